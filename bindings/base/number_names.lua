-- SPDX-License-Identifier: GPL-2.0-only
--- Names of system calls and VM exit reasons.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local names = {}

ffi.cdef [[
uint32_t seccomp_arch_resolve_name(const char *name);
char *seccomp_syscall_resolve_num_arch(uint32_t arch, int nr);
int seccomp_syscall_resolve_name_arch(uint32_t arch, const char *name);
]]

local NATIVE = 0 -- SCMP_ARCH_NATIVE; seccomp_arch_resolve_name() returns the same for an unknown machine
local has_seccomp, seccomp = pcall(ffi.load, 'libseccomp.so.2')
local syscalls = {}

-- Machine names of uname(2) that libseccomp spells differently.
local MACHINES = { armv6l = 'arm', armv7l = 'arm', armv8l = 'arm', i386 = 'x86', i486 = 'x86', i586 = 'x86',
  i686 = 'x86', mips64 = 'mipsel64' }

--- Returns libseccomp's number of a machine, nil if it is unknown.
local function token(machine)
  if machine == '' then return NATIVE end
  local found = seccomp.seccomp_arch_resolve_name(MACHINES[machine] or machine)
  return found ~= NATIVE and found or nil
end

-- In the numbers of the system calls of x32 programs on x86_64, and in those of i386 that BPF programs have seen.
local X32, I386 = 2 ^ 30, 2 ^ 29
names.X32, names.I386 = X32, I386

--- Returns which system calls a number is one of, if not of its machine's own: 'x32' or 'i386'.
---@param nr integer
---@param machine? string as uname(2) spells it; default: this machine
---@return string? abi
---@return integer nr that it has there
function names.syscall_abi(nr, machine)
  local is_x86 = machine == 'x86_64' or (machine or '') == '' and ffi.arch == 'x64'
  if not is_x86 or nr < I386 or nr >= 2 * X32 then return nil, nr end
  if nr >= X32 then return 'x32', nr end
  return 'i386', nr - I386
end

local ARCHITECTURES = { x32 = 'x32', i386 = 'x86' }

local function resolve(nr, machine)
  local abi, plain = names.syscall_abi(nr, machine)
  local arch = has_seccomp and nr >= 0 and nr < 2 * X32 and token(abi and ARCHITECTURES[abi] or machine)
  local found = arch and seccomp.seccomp_syscall_resolve_num_arch(arch, plain)
  local name = found and found ~= nil and ffi.string(found) or ('%d'):format(abi == 'i386' and plain or nr)
  if found and found ~= nil then libc.free(found) elseif abi ~= 'i386' then return name end
  return abi and abi .. ':' .. name or name
end

--- Returns the name of a system call, or its number if it is unknown or libseccomp is missing.
---@param nr integer
---@param machine? string as uname(2) spells it; default: this machine
---@return string
function names.syscall(nr, machine)
  nr, machine = tonumber(nr), machine or ''
  local known = syscalls[machine]
  if not known then
    known = {}
    syscalls[machine] = known
  end
  local name = known[nr] or resolve(nr, machine)
  known[nr] = name
  return name
end

--- Returns the number of a system call; nil if it is unknown or libseccomp is missing.
---@param name string
---@param machine? string as uname(2) spells it; default: this machine
---@return integer?
function names.syscall_number(name, machine)
  local arch = has_seccomp and token(machine or '')
  local nr = arch and seccomp.seccomp_syscall_resolve_name_arch(arch, name)
  return nr and nr >= 0 and nr or nil
end

--- System calls whose tracepoints have other names: those of the kernel's functions.
local TRACED = { newstat = 'stat', newlstat = 'lstat', newfstat = 'fstat', newuname = 'uname', umount = 'umount2',
  sendfile64 = 'sendfile' }

--- Returns the number of a system call of this machine; nil if it is unknown or libseccomp is missing.
---@param name string as in the names of tracepoints
---@return integer?
function names.traced_syscall(name) return names.syscall_number(TRACED[name] or name) end

-- asm/vmx.h: EXIT_REASON_*
local VMX = {
  [0] = 'EXCEPTION_NMI', [1] = 'EXTERNAL_INTERRUPT', [2] = 'TRIPLE_FAULT', [3] = 'INIT_SIGNAL',
  [4] = 'SIPI_SIGNAL', [7] = 'INTERRUPT_WINDOW', [8] = 'NMI_WINDOW', [9] = 'TASK_SWITCH', [10] = 'CPUID',
  [12] = 'HLT', [13] = 'INVD', [14] = 'INVLPG', [15] = 'RDPMC', [16] = 'RDTSC', [18] = 'VMCALL',
  [19] = 'VMCLEAR', [20] = 'VMLAUNCH', [21] = 'VMPTRLD', [22] = 'VMPTRST', [23] = 'VMREAD', [24] = 'VMRESUME',
  [25] = 'VMWRITE', [26] = 'VMOFF', [27] = 'VMON', [28] = 'CR_ACCESS', [29] = 'DR_ACCESS',
  [30] = 'IO_INSTRUCTION', [31] = 'MSR_READ', [32] = 'MSR_WRITE', [33] = 'INVALID_STATE',
  [34] = 'MSR_LOAD_FAIL', [36] = 'MWAIT_INSTRUCTION', [37] = 'MONITOR_TRAP_FLAG', [39] = 'MONITOR_INSTRUCTION',
  [40] = 'PAUSE_INSTRUCTION', [41] = 'MCE_DURING_VMENTRY', [43] = 'TPR_BELOW_THRESHOLD', [44] = 'APIC_ACCESS',
  [45] = 'EOI_INDUCED', [46] = 'GDTR_IDTR', [47] = 'LDTR_TR', [48] = 'EPT_VIOLATION', [49] = 'EPT_MISCONFIG',
  [50] = 'INVEPT', [51] = 'RDTSCP', [52] = 'PREEMPTION_TIMER', [53] = 'INVVPID', [54] = 'WBINVD',
  [55] = 'XSETBV', [56] = 'APIC_WRITE', [57] = 'RDRAND', [58] = 'INVPCID', [59] = 'VMFUNC', [60] = 'ENCLS',
  [61] = 'RDSEED', [62] = 'PML_FULL', [63] = 'XSAVES', [64] = 'XRSTORS', [67] = 'UMWAIT', [68] = 'TPAUSE',
  [74] = 'BUS_LOCK', [75] = 'NOTIFY',
}

-- asm/svm.h: SVM_EXIT_*
local SVM = {
  [0] = 'READ_CR0', [2] = 'READ_CR2', [3] = 'READ_CR3', [4] = 'READ_CR4', [8] = 'READ_CR8', [16] = 'WRITE_CR0',
  [18] = 'WRITE_CR2', [19] = 'WRITE_CR3', [20] = 'WRITE_CR4', [24] = 'WRITE_CR8', [32] = 'READ_DR0',
  [33] = 'READ_DR1', [34] = 'READ_DR2', [35] = 'READ_DR3', [36] = 'READ_DR4', [37] = 'READ_DR5',
  [38] = 'READ_DR6', [39] = 'READ_DR7', [48] = 'WRITE_DR0', [49] = 'WRITE_DR1', [50] = 'WRITE_DR2',
  [51] = 'WRITE_DR3', [52] = 'WRITE_DR4', [53] = 'WRITE_DR5', [54] = 'WRITE_DR6', [55] = 'WRITE_DR7',
  [64] = 'EXCP_BASE', [95] = 'LAST_EXCP', [0x60] = 'INTR', [0x61] = 'NMI', [0x62] = 'SMI', [0x63] = 'INIT',
  [0x64] = 'VINTR', [0x65] = 'CR0_SEL_WRITE', [0x66] = 'IDTR_READ', [0x67] = 'GDTR_READ', [0x68] = 'LDTR_READ',
  [0x69] = 'TR_READ', [0x6a] = 'IDTR_WRITE', [0x6b] = 'GDTR_WRITE', [0x6c] = 'LDTR_WRITE', [0x6d] = 'TR_WRITE',
  [0x6e] = 'RDTSC', [0x6f] = 'RDPMC', [0x70] = 'PUSHF', [0x71] = 'POPF', [0x72] = 'CPUID', [0x73] = 'RSM',
  [0x74] = 'IRET', [0x75] = 'SWINT', [0x76] = 'INVD', [0x77] = 'PAUSE', [0x78] = 'HLT', [0x79] = 'INVLPG',
  [0x7a] = 'INVLPGA', [0x7b] = 'IOIO', [0x7c] = 'MSR', [0x7d] = 'TASK_SWITCH', [0x7e] = 'FERR_FREEZE',
  [0x7f] = 'SHUTDOWN', [0x80] = 'VMRUN', [0x81] = 'VMMCALL', [0x82] = 'VMLOAD', [0x83] = 'VMSAVE',
  [0x84] = 'STGI', [0x85] = 'CLGI', [0x86] = 'SKINIT', [0x87] = 'RDTSCP', [0x88] = 'ICEBP', [0x89] = 'WBINVD',
  [0x8a] = 'MONITOR', [0x8b] = 'MWAIT', [0x8c] = 'MWAIT_COND', [0x8d] = 'XSETBV', [0x8e] = 'RDPRU',
  [0x8f] = 'EFER_WRITE_TRAP', [0x90] = 'CR0_WRITE_TRAP', [0x91] = 'CR1_WRITE_TRAP', [0x92] = 'CR2_WRITE_TRAP',
  [0x93] = 'CR3_WRITE_TRAP', [0x94] = 'CR4_WRITE_TRAP', [0x95] = 'CR5_WRITE_TRAP', [0x96] = 'CR6_WRITE_TRAP',
  [0x97] = 'CR7_WRITE_TRAP', [0x98] = 'CR8_WRITE_TRAP', [0x99] = 'CR9_WRITE_TRAP', [0x9a] = 'CR10_WRITE_TRAP',
  [0x9b] = 'CR11_WRITE_TRAP', [0x9c] = 'CR12_WRITE_TRAP', [0x9d] = 'CR13_WRITE_TRAP',
  [0x9e] = 'CR14_WRITE_TRAP', [0x9f] = 'CR15_WRITE_TRAP', [0xa2] = 'INVPCID', [0x400] = 'NPF',
  [0x401] = 'AVIC_INCOMPLETE_IPI', [0x402] = 'AVIC_UNACCELERATED_ACCESS', [0x403] = 'VMGEXIT',
  [0xf0000000] = 'SW',
}

local BY_ISA = { VMX, SVM }

--- Why a virtual CPU left its guest.
---@param isa integer 1 VMX, 2 SVM, as the isa field of kvm:kvm_exit says
---@param reason integer
---@return string
function names.exit_reason(isa, reason)
  reason = tonumber(reason)
  local known = BY_ISA[tonumber(isa)]
  -- Bit 31 of a VMX reason says that the entry failed.
  return known and known[reason % 2 ^ 31] or ('0x%x'):format(reason)
end

return names
