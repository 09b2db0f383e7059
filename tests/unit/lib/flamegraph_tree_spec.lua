-- SPDX-License-Identifier: GPL-2.0-only
--- Everything that is added to a tree is in its folded stacks, in its sums by function and in its picture.
local flametree = require 'lib.flamegraph_tree'
local flamepicture = require 'lib.engines.flamegraph_svg'

--- Adds a folded stack.
local function add(tree, stack, value, settings)
  settings = settings or {}
  local roots, names, kinds = flametree.parse(stack)
  flametree.add(tree, roots, names, kinds, #names, value, settings.base or 0, settings.reverse)
end

local function fold(tree, roots, marked)
  local lines = {}
  flametree.fold(tree, roots or {}, marked or false, function(line) lines[#lines + 1] = line end)
  return table.concat(lines)
end

describe('a tree of stacks', function()
  it('merges them from their roots, and folds them sorted', function()
    local tree = flametree.new()
    add(tree, 'app;main;b', 2)
    add(tree, 'app;main;a', 1)
    add(tree, 'app;main', 4)
    add(tree, 'app;main;b', 3)
    assert.equal('app;main 4\napp;main;a 1\napp;main;b 5\n', fold(tree))
    assert.equal(10, tree.value)
  end)

  it('puts the innermost function first on request', function()
    local tree = flametree.new()
    add(tree, 'app;main;x;f', 2, { reverse = true })
    add(tree, 'app;main;y;f', 1, { reverse = true })
    assert.equal('app;f;x;main 2\napp;f;y;main 1\n', fold(tree))
  end)

  it('recognizes kernel frames by their entry and by marks, and marks them', function()
    local tree = flametree.new()
    add(tree, 'app;main;entry_SYSCALL_64_after_hwframe;do_syscall_64', 1)
    add(tree, 'app;main;asm_exc_page_fault;do_user_addr_fault', 1)
    add(tree, 'app;main;jitted_[j];callee_[i]', 1)
    assert.equal('app;main;asm_exc_page_fault_[k];do_user_addr_fault_[k] 1\n'
      .. 'app;main;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k] 1\n'
      .. 'app;main;jitted_[j];callee_[i] 1\n', fold(tree, {}, true))
  end)

  it('is moved below the roots of an interval, twice below the same', function()
    local tree = flametree.new()
    for i = 1, 2 do
      local part = flametree.new()
      add(part, 'app;main', i)
      add(part, 'app', 1)
      flametree.graft(tree, { '2026-01-01', '10:00:00' }, part)
    end
    assert.equal('2026-01-01;10:00:00;app 2\n2026-01-01;10:00:00;app;main 3\n', fold(tree))
    local roots, names = flametree.parse '2026-01-01;10:00:00;app;main;f'
    assert.same({ { '2026-01-01', '10:00:00', 'app' }, { 'f', 'main' } }, { roots, names })
  end)

  it('keeps separators out of names', function()
    local tree = flametree.new()
    flametree.add(tree, { 'a b;c\27' }, { 'operator new', 'x;y\n', '[libc.so]' }, { 'u', 'u', '?' }, 3, 1, 0)
    assert.equal('a_b:c\\x1b;Unknown;x:y\\x0a;operator_new 1\n', fold(tree))
  end)

  it('sums by function, recursion once, also from reversed stacks', function()
    for _, reverse in ipairs { false, true } do
      local tree = flametree.new()
      add(tree, 'app;main;f;f', 3, { reverse = reverse })
      add(tree, 'app;main;f;g', 2, { reverse = reverse })
      add(tree, 'app;main', 1, { reverse = reverse })
      assert.same({
        { name = 'f', self = 3, total = 5 },
        { name = 'g', self = 2, total = 2 },
        { name = 'main', self = 1, total = 6 },
      }, flametree.functions(tree, reverse))
    end
  end)

  it('reads folded stacks, with one count or two', function()
    local function read(text, as)
      local tree = flametree.new()
      local file = io.tmpfile()
      file:write(text)
      file:seek 'set'
      local had_two = flametree.read(file, 'FILE', tree, as or 'value')
      return tree, had_two
    end
    local tree, had_two = read 'a;b c 1\n\na;b c 2\n'
    assert.same({ 3, false, 'a;b_c 3\n' }, { tree.value, had_two, fold(tree) })
    tree, had_two = read 'a;b 5 7\n'
    assert.same({ 7, 5, true }, { tree.value, tree.base, had_two })
    tree = read('a;b 5\n', 'base')
    assert.same({ 0, 5 }, { tree.value, tree.base })
    assert.equal("FILE:2: invalid folded stack 'nothing'", select(2, pcall(read, 'a;b 1\nnothing\n')))
    assert.equal("FILE:1: invalid folded stack 'a 1.2.3'", select(2, pcall(read, 'a 1.2.3\n')))
  end)
end)

describe('a flame graph', function()
  local function draw(tree, settings)
    settings = settings or {}
    settings.title, settings.unit = settings.title or 'T', 'samples'
    return table.concat(flamepicture.svg(tree, settings))
  end

  it('has a frame for each function that is wide enough to be seen', function()
    local tree = flametree.new()
    add(tree, 'app;main;big', 1000000)
    add(tree, 'app;main;tiny', 10)
    local svg = draw(tree)
    assert.truthy(svg:find('<title>big (1000000 samples, 100.00%)</title>', 1, true))
    assert.falsy(svg:find 'tiny')
    local _, frames = svg:gsub('<g data%-s', '')
    assert.equal(4, frames)
  end)

  it('colors by kind', function()
    local tree = flametree.new()
    add(tree, 'app;u;k_[k]', 1)
    add(tree, 'app;j_[j];i_[i]', 1)
    add(tree, 'app;ns::f()', 1)
    local svg, colour = draw(tree), {}
    for name, r, g, b in svg:gmatch '<title>(%S+) %(.-</title><rect.-fill="rgb%((%d+),(%d+),(%d+)%)' do
      colour[name] = { tonumber(r), tonumber(g), tonumber(b) }
    end
    assert.is_true(colour.u[1] > 200 and colour.u[2] < 150, 'user is red')
    assert.is_true(colour.k[1] > 200 and colour.k[2] > 110 and colour.k[3] < 50, 'kernel is orange')
    assert.is_true(colour.j[2] > colour.j[1] and colour.j[2] > colour.j[3], 'JIT is green')
    assert.is_true(colour.i[2] > colour.i[1] and colour.i[3] > colour.i[1], 'inlined is aqua')
    assert.is_true(colour['ns::f()'][1] > 180 and colour['ns::f()'][2] > 170, 'C++ is yellow')
  end)

  it('escapes its input', function()
    local tree = flametree.new()
    flametree.add(tree, { '<&>' }, { ']]></svg>"\'\239\191\191' }, { 'u' }, 1, 1, 0)
    local svg = draw(tree, { title = '<script>' })
    assert.falsy(svg:find(']]></svg>"', 1, true))
    assert.falsy(svg:find('<script>', 1, true))
    assert.falsy(svg:find('\239\191\191', 1, true))
    assert.truthy(svg:find('<title>&lt;&amp;&gt; (', 1, true))
  end)

  it('shows a difference by color and in words', function()
    local tree = flametree.new()
    add(tree, 'app;more', 8, { base = 4 })
    add(tree, 'app;less', 1, { base = 5 })
    add(tree, 'app;same', 1, { base = 1 })
    local svg = draw(tree, { difference = true })
    assert.truthy(svg:find 'more %(8 samples, 80.00%%; %+40.00%%%)</title><rect[^>]*fill="rgb%(255,90,90%)"')
    assert.truthy(svg:find 'less %(1 samples, 10.00%%; %-40.00%%%)</title><rect[^>]*fill="rgb%(90,90,255%)"')
    assert.truthy(svg:find 'same %(1 samples, 10.00%%; %+0.00%%%)</title><rect[^>]*fill="rgb%(236,236,236%)"')
  end)
end)
