-- SPDX-License-Identifier: GPL-2.0-only
--- Exits of virtual machines, as the tracepoint kvm:kvm_exit has them.
local names = require 'bindings.base.number_names'

local kvm = {}

local HLT = { [1] = 12, [2] = 0x78 } -- by isa

--- The name of the reason for which a virtual CPU left its guest, such as 'EPT_VIOLATION'.
---@param isa integer 1 VMX, 2 SVM: the field isa
---@param reason integer the field exit_reason
---@return string
function kvm.exit_reason(isa, reason) return names.exit_reason(isa, reason) end

--- Whether the guest has nothing to do: its exit lasts until it has.
---@param isa integer
---@param reason integer
---@return boolean
function kvm.is_halt(isa, reason) return HLT[isa] == reason end

return kvm
