-- SPDX-License-Identifier: GPL-2.0-only
--- Details of pairs: the events before, between and after the two events of a pair. They are given to lib.pairs,
--- which then keeps the events that may be shown:
---
---   local details = detail.new(assert(detail.parse 'samecpu,-1ms'), { out = out, session = session })
---   pairs.new { ..., others = untraced, details = details,
---     pair = function(p, second) if p.ns > limit then details:show(p, second) end end }
local context = require 'lib.engines.context'
local facade = require 'bindings.base.facade'
local safe = require('lib.text').safe
local twins = require 'lib.engines.twins'
local units = require 'lib.units'

local detail = {}

local TIME_EVERY = 50 -- every 50th line shows its offset even without a note

---@class DetailSettings
---@field cpu? boolean show only events on the CPU of either event, or of the thread that the pair is about
---@field pid? boolean show only events of the same process
---@field tid? boolean show only events of the same thread
---@field key? boolean show only events with the same key
---@field first boolean these tests compare with the first event
---@field second boolean these tests compare with the second event
---@field before number show events up to this time (ns) before the first event
---@field after number show events up to this time (ns) after the second event
---@field hide number count events that follow each other faster than this (ns) instead of showing them

local WORDS = { samecpu = 'cpu', samepid = 'pid', sametid = 'tid', samekey = 'key', ['1'] = 'first', ['2'] = 'second' }
local EXPECTED = 'samecpu, samepid, sametid, samekey, 1, 2, hide<N, -N or +N'

--- Parses the value of --detail.
---@param text string words separated by commas: samecpu, samepid, sametid, samekey, 1, 2, hide<N, -N, +N; may be
--- empty
---@return DetailSettings? settings nil: see message
---@return string? message
function detail.parse(text)
  local s = { before = 0, after = 0, hide = 0 }
  for word in text:gmatch '[^,]+' do
    local name = WORDS[word]
    local sign, duration = word:match '^([-+]?)(.*)$'
    local hide = word:match '^hide<(.*)$'
    if name then
      s[name] = true
    else
      local ns, message = units.duration(hide or duration)
      if not ns then
        if not (hide or duration:match '^%d') then
          message = ("--detail: unknown word '%s' (expected %s)"):format(word, EXPECTED)
        end
        return nil, message
      end
      s[hide and 'hide' or sign == '-' and 'before' or 'after'] = ns
    end
  end
  if not s.first and not s.second then s.first, s.second = true, true end
  return s
end

--- Parses the option --detail, and warns if details are asked for but never shown.
---@param name string name of the profiler
---@param opt table
---@param untraced Event[] the events that only details show
---@param prints boolean whether the options have a limit, such as --than, that makes pairs print
---@param out Output
---@return DetailSettings? settings nil: no details, or an error if there is a message
---@return string? message
function detail.of_options(name, opt, untraced, prints, out)
  if not opt.detail then
    for _, event in ipairs(untraced) do
      if not event.attrs.trigger then
        out:warn(('%s: %s is untraced: only --detail shows it'):format(name, event.name))
      end
    end
    return
  end
  local settings, message = detail.parse(opt.detail)
  if not settings then return nil, message end
  if prints then return settings end
  out:warn(('%s: --detail shows nothing without a limit such as --than'):format(name))
end

--- Prints pairs with their details.
---@class Details
local Details = {}
Details.__index = Details
local public -- creates the facade of details

--- Creates details for lib.pairs.
---@param settings DetailSettings
---@param env { out: Output, session: Session, name?: string, keyed_by_thread?: boolean, verbose?: boolean } name: of
--- the profiler; keyed_by_thread: the key of a pair is the thread that it is about; verbose: print the reason why each
--- event is shown
---@return Details
function detail.new(settings, env)
  local self = {
    settings = settings,
    out = env.out,
    session = env.session,
    name = env.name or 'details',
    keyed_by_thread = env.keyed_by_thread or false,
    verbose = env.verbose,
    waiting = {}, -- pairs to print when the events up to `after` have arrived
    incomplete = 0, -- pairs with a line that says that events are missing
    events = 0, -- number of printed events since is_cut()
  }
  return public(setmetatable(self, Details))
end

--- Called by lib.pairs when the session has started.
---@param history History
---@param key_of fun(ev: any): any, boolean
---@package
function Details:open(history, key_of)
  self.history = history
  self.context = context.new(self.settings, self.keyed_by_thread, self.session.preempted_state, key_of)
end

--- Returns the time from which on events must be kept, given the first time that pairs need.
---@param oldest number
---@return number
---@package
function Details:needs(oldest)
  for _, pair in ipairs(self.waiting) do
    oldest = math.min(oldest, pair.first_time)
  end
  return oldest - self.settings.before
end

--- Returns when the first waiting pair will be complete; nil if none waits.
---@return number?
---@package
function Details:due()
  local first = self.waiting[1]
  return first and first.second_time + self.settings.after
end

--- Prints the waiting pairs that are complete. Returns whether there were any.
---@param now number time of the latest event
---@return boolean
---@package
function Details:advance(now)
  local waiting, settings, history, n = self.waiting, self.settings, self.history, 0
  local from, to = math.huge, nil
  while waiting[n + 1] and waiting[n + 1].second_time + settings.after <= now do
    n = n + 1
    from, to = math.min(from, waiting[n].first_time), waiting[n].second_time
  end
  if n == 0 then return false end
  if history.fetch and not self:is_cut() then history:fetch(from - settings.before, to + settings.after) end
  for i = 1, n do
    local pair = waiting[i]
    self:print(pair)
    history:release(pair.first_kept)
    history:release(pair.second_kept)
  end
  self.waiting = {}
  for i = n + 1, #waiting do table.insert(self.waiting, waiting[i]) end
  return true
end

--- Prints a pair, now or when the events after it have arrived. Call it in the function `pair` of lib.pairs.
---@param p Pair
---@param second Ev second event of the pair
function Details:show(p, second)
  local history = self.history
  local first = history:first(p)
  if not first then return end
  local last = history:copy(second)
  local pair = {
    first_time = p.first_time,
    second_time = p.second_time,
    key = tonumber(p.key),
    first_kept = first,
    second_kept = last,
  }
  if history.fetch then -- the events around it come later
    if last then table.insert(self.waiting, pair) else history:release(first) end
  elseif self.settings.after > 0 and select(2, history:index(last)) then
    history:retain(pair.first_kept)
    history:retain(pair.second_kept)
    table.insert(self.waiting, pair)
  else
    self:print(pair)
  end
end

--- Returns whether the run has been interrupted so long ago that nothing more is printed, and says so once.
---@package
function Details:is_cut()
  local events = self.events
  self.events = 0
  if not self.out:is_overdue(events) then return false end
  if not self.was_cut then
    self.was_cut = true
    self.out:warn(('%s: partial: interrupted, so the details of further pairs are not printed'):format(self.name))
  end
  return true
end

--- Prints a first event whose second event may be lost.
---@param p Pair
---@param time number start of the loss, ns
function Details:show_lost(p, time)
  local first = self.history:first(p)
  if not first then return end
  self:print { first_time = p.first_time, lost_time = time, key = tonumber(p.key), first_kept = first }
end

-- Printing ---------------------------------------------------------------------------------------

--- Prints a line that is not an event; nothing in JSON and CSV, where the events have the same values.
---@package
function Details:line(format, ...) self.out:printf(format .. '\n', ...) end

--- Returns whether an event of another machine was shown before this one that may have happened after it: they are
--- closer together than the error of the clocks.
---@package
function Details:is_uncertain(ev, event)
  local is_uncertain, shown = false, self.shown
  for class, time in pairs(shown) do
    if ev._time - time < self.session.clock_error(class, event.class) then is_uncertain = true end
  end
  shown[event.class] = ev._time
  return is_uncertain
end

--- Prints an event with a margin instead of its wall time.
---@package
function Details:event(ev, event, margin, part)
  self.events = self.events + 1
  part.uncertain = self:is_uncertain(ev, event)
  if part.uncertain then margin = margin and margin:gsub('^| ?', '|~') or '~' end
  self.out:print_event(ev, false, margin and ('%-27s '):format(margin) or true, part)
end

local function us(ns) return ns / 1000 end

--- Returns whether no other record of the same occurrence is shown, and notes that this one is.
local function is_new(pair, i)
  local occurrence = pair.occurrences[i]
  if occurrence.shown then return false end
  occurrence.shown = true
  return true
end

--- Prints the selected events of numbers from .. to-1, which are before or after the pair.
---@return number? first_time
---@return number? last_time
---@package
function Details:outside(pair, from, to, part)
  local first, last
  for i = from, to - 1 do
    local ev, event = self.history:at(i)
    local shown, note, reason = self.context:look(ev, event)
    if shown and is_new(pair, i) then
      local offset = ev._time - pair.first_time
      if not first and part == 'before' then self:line('-Previous %.3f us', us(offset)) end
      first, last = first or ev._time, ev._time
      local margin = self.verbose and reason and '| ' .. reason or '|'
      self:event(ev, event, note and ('| %12.3f [%s]'):format(us(offset), note) or margin,
        { part = part, offset_ns = offset, note = note, reason = reason })
    end
  end
  return first, last
end

--- Returns the time between the two events, marked with ~ if it is shorter than the error of their clocks.
local function whole_of(pair)
  local ns = pair.second_time - pair.first_time
  return ('|+ %s%.3f us'):format(math.abs(ns) < pair.clock_error and '~' or '', us(ns))
end

--- Returns the margin of an event between the two.
---@param verbose? boolean with the reason why the event is shown
local function margin_of(pair, item, printed, verbose)
  if printed == 1 then
    local whole = pair.lost_time and ('| >= %.3f us'):format(us(pair.lost_time - pair.first_time))
      or whole_of(pair)
    return verbose and item.reason and whole .. ' ' .. item.reason or whole
  elseif item.run then
    return ('| %12.3f %s'):format(us(item.run), safe(item.comm:sub(1, 11)))
  elseif item.note then
    return ('| %12.3f [%s]'):format(us(item.offset), item.note)
  end
  if printed % TIME_EVERY == 0 then return ('|- %.3f us'):format(us(item.offset)) end
  return verbose and item.reason and '| ' .. item.reason or '|'
end

--- Prints the selected events of numbers from .. to-1, which are between the two. Events that follow each other faster
--- than hide<N are counted instead, except for the last one before a gap.
---@return integer printed
---@return integer hidden number of hidden events after the last printed one
---@package
function Details:between(pair, from, to)
  local history, look, hide = self.history, self.context, self.settings.hide
  local printed, hidden, last_time, last_hidden = 0, 0, nil, nil
  local function print_item(item, count)
    printed = printed + 1
    local ev, event = history:at(item.index)
    self:event(ev, event, margin_of(pair, item, printed, self.verbose), { part = 'between', offset_ns = item.offset,
      run_ns = item.run, note = item.note, reason = item.reason, hidden = count > 0 and count or nil })
  end
  for i = from, to - 1 do
    local ev, event = history:at(i)
    local shown, note, reason = look:look(ev, event)
    local run, comm
    if self.settings.cpu then run, comm = look:run(ev, event) end
    if shown and is_new(pair, i) then
      local item = { index = i, offset = ev._time - pair.first_time, note = note, run = run, comm = comm,
        reason = reason }
      if last_time and ev._time - last_time < hide then
        hidden, last_hidden = hidden + 1, item
      else
        if hidden > 0 then
          if hidden > 1 then self:line('| %17d hidden', hidden - 1) end
          print_item(last_hidden, hidden - 1)
          hidden = 0
        end
        print_item(item, 0)
      end
      last_time = ev._time
    end
  end
  return printed, hidden
end

--- Prints a pair with its details. Without second_kept its second event is lost.
---@package
function Details:print(pair)
  if self:is_cut() then return end
  local history, settings, look = self.history, self.settings, self.context
  local first_index, found = history:index(pair.first_kept)
  local second_index, second_found = history:find(pair.lost_time or 0), false
  if pair.second_kept then second_index, second_found = history:index(pair.second_kept) end
  pair.first, pair.first_event = history:view(pair.first_kept)
  if pair.second_kept then
    pair.second, pair.second_event = history:view(pair.second_kept)
    pair.clock_error = self.session.clock_error(pair.first_event.class, pair.second_event.class)
  end
  self.shown = {} -- by class: when the last event of it was shown
  look:start(pair)
  local from = pair.first_time - settings.before
  local before = settings.before > 0 and history:find(from) or first_index
  local after = settings.after > 0 and history:find((pair.second_time or 0) + settings.after + 1)
    or second_index + 1
  pair.occurrences = twins.find(history, before, after,
    { [first_index] = found, [second_index] = second_found })
  history:check()
  self:outside(pair, before, first_index, 'before')
  look:reach_first()
  self:event(pair.first, pair.first_event, nil, { part = 'first', offset_ns = 0 })
  if history.missing_until >= from then
    self.incomplete = self.incomplete + 1
    self:line '| events are missing here: there were too many to keep'
  end
  local printed, hidden = self:between(pair, found and first_index + 1 or first_index, second_index)
  if hidden > 0 then self:line('| %17d hidden', hidden) end
  if pair.lost_time then
    self:line('| >= %12.3f us, event2 may be lost.', us(pair.lost_time - pair.first_time))
    return
  end
  if printed == 0 then self:line('%s', whole_of(pair)) end
  self:event(pair.second, pair.second_event, nil, { part = 'second', offset_ns = pair.second_time - pair.first_time,
    hidden = hidden > 0 and hidden or nil })
  if settings.after == 0 then return end
  look:look(pair.second, pair.second_event)
  local _, last = self:outside(pair, second_found and second_index + 1 or second_index, after, 'after')
  if last then self:line('`After %.3f us', us(last - pair.second_time)) end
end

public = facade.class('details', Details, { 'show', 'show_lost' })

return detail
