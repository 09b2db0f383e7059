-- SPDX-License-Identifier: GPL-2.0-only
-- Mutated selectors, expressions and filters: the parsers return a result or an error that points into the
-- text, what compiles runs, and nothing raises. FUZZ_COUNT and FUZZ_SEED make longer runs.

local diagnostic = require 'bindings.base.diagnostic'
local event = require 'tests.unit.bindings.expr.expr_event'
local expr = require 'bindings.expr.compile'
local options = require 'bindings.options.parser'
local selector = require 'bindings.select.selector'
local shell = require 'bindings.base.shell'

local COUNT = tonumber(os.getenv('FUZZ_COUNT')) or 4000
local SEED = tonumber(os.getenv('FUZZ_SEED')) or 1

local function read_lines(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

local SELECTORS = read_lines('tests/fuzz/corpus/selector/recipes')
local EXPRESSIONS = read_lines('tests/fuzz/corpus/expr/expressions')
local FILTERS = read_lines('tests/fuzz/corpus/expr/filters')

local TOKENS = {
  '(', ')', '[', ']', '"', "'", '\\', '/', ',', '=', '==', '!=', '~', '&&', '||', '&', '|', '!', '?', ':', '*', '+',
  '-', '%', '<<', '>>', '++', '--', '0', '1', '-1', '0xffffffffffffffff', '9223372036854775807', '"a"', 'comm', 'name',
  'nums', 'args', 'ints', 'f_i8', 'f_u64', 'f_i32', 'zero', 'sizeof', '(char *)', '(long)', '#', '//', '%s', '%n', '\0',
  '\255', ' ', '.', 'CPUS{1}', 'stack', 'key=', '@', '{', '}', '1ms', 'printf("', 'if', 'end', '\n', 'strncmp(',
  '&common_type',
}

local function pick(list) return list[math.random(#list)] end

local function mutate(text, corpus)
  for _ = 1, math.random(4) do
    local at, stop = math.random(0, #text), math.random(0, 8)
    local r = math.random(7)
    if r <= 3 then
      text = text:sub(1, at) .. pick(TOKENS) .. text:sub(at + 1)
    elseif r == 4 then
      text = text:sub(1, at) .. text:sub(at + 1 + stop)
    elseif r == 5 then
      local other = pick(corpus)
      local from = math.random(#other)
      text = text:sub(1, at) .. other:sub(from, from + stop * 3) .. text:sub(at + 1)
    elseif r == 6 then
      text = text:sub(1, at) .. string.char(math.random(0, 255)) .. text:sub(at + 2)
    else
      local part = text:sub(at, at + stop)
      text = text:sub(1, at) .. part:rep(math.random(5)) .. text:sub(at + 1)
    end
  end
  return text
end

local ENV = {
  printf = function(format, ...) return #format:format(...) end,
  ksymbol = function() return 'symbol' end,
  comm_get = function() return 'task' end,
  syscall_name = function() return 'read' end,
  exit_reason_str = function() return 'HLT' end,
  intern = function(_, room) return room end,
}

local RECORDS = {
  event.new { f_i8 = -3, f_u8 = 2, f_i32 = -7, f_u64 = 3, comm = 'bash', name = '/bin/ls\0', nums = ('\1'):rep(12) },
  event.new { f_i32 = 2147483647, comm = ('x'):rep(16), words = { name = 0xffffffff, nums = 0x0003ffff, rel = 0 } },
}

local function check_error(text, err)
  assert(type(err.message) == 'string' and err.column >= 1 and err.column <= #text + 1, text)
  local caret = diagnostic.caret(err)
  assert(select(2, caret:gsub('\n', '')) == 2 and not caret:gsub('\n', ''):find('%c'), text)
end

local function check_compiled(text, compiled)
  local fn = expr.load(compiled, ENV)
  for _, record in ipairs(RECORDS) do
    local ok, err = pcall(event.run, fn, record)
    if not ok then error(('%s\n%s\n%s'):format(text, err, compiled.source)) end
  end
end

local FORMS = { 'value', 'key', 'number', 'filter' }

local function try_expression(text)
  local compiled, err = expr.compile(text, event.fields, { form = pick(FORMS) })
  if compiled then check_compiled(text, compiled) else check_error(text, err) end
end

local function try_filter(text)
  local compiled, err = expr.compile_filter(text, event.fields)
  if compiled then check_compiled(text, compiled) else check_error(text, err) end
  local parts
  parts, err = expr.split_filter(text, event.fields)
  if not parts then
    check_error(text, err)
  elseif parts.user then
    check_compiled(text, parts.user)
  end
end

local SOURCE = assert(options.declare { options = {
  freq = { type = 'integer', short = 'F', min = 1, help = 'h' },
  interruptible = { type = 'flag', short = 'S', help = 'h' },
  than = { type = 'duration', help = 'h' },
} })

--- The options of a profiler as a source: an error is about one of the words.
local function try_options(text)
  local words, columns, unclosed = shell.split(text)
  assert(#words == #columns and (not unclosed or unclosed <= #text), text)
  local opt, rest, at = options.parse_words(SOURCE, words)
  assert(opt or (type(rest) == 'string' and (not at or (at >= 1 and at <= math.max(#words, 1)))), text)
end

local function try_selector(text)
  for _, profilers in ipairs { {}, { profile = true, ['task-state'] = true } } do
    local list, err = selector.parse(text, { cpu = true }, profilers)
    if not list then return check_error(text, err) end
    for _, sel in ipairs(list) do
      assert(sel.name ~= '' and sel.column <= #text and type(sel.attrs) == 'table', text)
      if sel.kind == 'profiler' and sel.filter then try_options(sel.filter) end
    end
  end
end

describe('mutated', function()
  local CASES = {
    { 'selectors', SELECTORS, try_selector },
    { 'expressions', EXPRESSIONS, try_expression },
    { 'filters', FILTERS, try_filter },
  }
  for _, case in ipairs(CASES) do
    it(case[1] .. ' never raise', function()
      math.randomseed(SEED)
      for _, text in ipairs(case[2]) do case[3](text) end
      for _ = 1, COUNT do
        local text = mutate(pick(case[2]), case[2])
        local ok, err = pcall(case[3], text)
        if not ok then error(('%q: %s'):format(text, tostring(err))) end
      end
    end)
  end
end)
