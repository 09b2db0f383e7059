-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the shell function for completion. It calls `profscript --complete`, which knows the current profilers and
--- events.
local BASH = [=[
# Completion of profscript: the candidates come from the program itself.
_profscript() {
	local mode='' line
	COMPREPLY=()
	while IFS= read -r line; do
		if [ -z "$mode" ]; then mode=$line; else COMPREPLY+=("$line"); fi
	done < <("${1/#\~/$HOME}" --complete "$COMP_LINE" "$COMP_POINT" "${COMP_WORDBREAKS-}" 2>/dev/null)
	case $mode in
	open)
		compopt -o nospace 2>/dev/null
		;;
	files | commands)
		[ "$mode" = files ] && compopt -o filenames 2>/dev/null
		while IFS= read -r line; do
			COMPREPLY+=("$line")
		done < <(compgen -A "${mode%s}" -- "$2")
		;;
	esac
}
complete -F _profscript profscript
]=]

return {
  summary = 'Print the completion script of a shell',
  examples = {
    { 'source <(profscript completion bash)', 'in ~/.bashrc, if completion is not installed' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'shell', type = 'enum', values = { 'bash', 'zsh' }, help = 'bash or zsh' },
  },

  start = function(opt, out)
    if opt.shell == 'zsh' then out:write 'autoload -Uz compinit bashcompinit\ncompinit\nbashcompinit\n' end
    out:write(BASH)
  end,
}
