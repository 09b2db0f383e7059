return { summary = 'S', start = function(_, out) return { ['a:b'] = function(ev) out:print(ev.end) end } end }
