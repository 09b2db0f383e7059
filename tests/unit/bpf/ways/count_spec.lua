-- SPDX-License-Identifier: GPL-2.0-only
-- The account of counting in the kernel, with rows and buckets that are wrong.
local figures = require 'bindings.report.figures'
local count = require 'bpf.ways.count'

--- Returns what differs for a tally of which 100 events are in rows of keys.
local function differences(in_buckets)
  local tally
  local kernel = { offer = function(_, offer) tally = offer end }
  count.new({ run = { services = {}, in_kernel = kernel } }, {})
  tally._list = { { hashed = 1, settings = { hist = {} }, in_rows = 100, in_buckets = in_buckets },
    { hashed = 0, settings = { hist = {} } }, { hashed = 1, settings = {}, in_rows = 7 } }
  return figures.differences({ tally:figures() }, {})
end

describe('the account of histograms by key', function()
  it('has each event of a row in a bucket', function() assert.same({}, differences(100)) end)

  it('misses buckets that were dropped', function()
    assert.same({ '4 of 100 values in histograms are missing: programs counted them, but they are in no bucket' },
      differences(96))
    assert.equal(1, #differences(nil))
  end)

  it('sees buckets that were added twice', function()
    assert.same({ '110 values in histograms were read, which is 10 more than programs counted' }, differences(110))
  end)
end)
