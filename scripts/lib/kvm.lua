-- SPDX-License-Identifier: GPL-2.0-only
--- Exit reasons of virtual machines, as in the tracepoint kvm:kvm_exit.
local names = require 'bindings.base.number_names'

local kvm = {}

local HLT = { [1] = 12, [2] = 0x78 } -- by isa

--- Returns the name of an exit reason, such as 'EPT_VIOLATION'.
---@param isa integer the field isa: 1 VMX, 2 SVM
---@param reason integer the field exit_reason
---@return string
function kvm.exit_reason(isa, reason) return names.exit_reason(isa, reason) end

--- Returns whether the guest has halted because it is idle. Such an exit lasts until the guest has work.
---@param isa integer the field isa
---@param reason integer the field exit_reason
---@return boolean
function kvm.is_halt(isa, reason) return HLT[isa] == reason end

--- Returns a sentence for a run without any exits.
---@param opt table
---@param session Session
---@return string
function kvm.none_ran(opt, session)
  local where = session.recorded() and 'in this recording' or (session.per_thread or opt.cpus or opt.cgroups)
    and 'on the traced CPUs or in the traced tasks' or 'on this machine'
  return 'no virtual machine ran with KVM ' .. where
end

return kvm
