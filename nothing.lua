return { summary = 'S', start = function() local t = {} return end }
