-- SPDX-License-Identifier: GPL-2.0-only
--- Exits of virtual machines, as the tracepoint kvm:kvm_exit reports them.
local names = require 'bindings.base.number_names'

local kvm = {}

local HLT = { [1] = 12, [2] = 0x78 } -- by isa

--- The name of an exit reason, such as 'EPT_VIOLATION'.
---@param isa integer the field isa: 1 VMX, 2 SVM
---@param reason integer the field exit_reason
---@return string
function kvm.exit_reason(isa, reason) return names.exit_reason(isa, reason) end

--- Whether the guest has halted because it has nothing to do: the exit lasts until it has.
---@param isa integer
---@param reason integer
---@return boolean
function kvm.is_halt(isa, reason) return HLT[isa] == reason end

return kvm
