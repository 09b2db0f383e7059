return { summary = 'S', start = function(opt, out) session.stop() return {} end }
