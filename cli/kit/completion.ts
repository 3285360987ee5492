import type { Command } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** Facts about one command that a shell needs. */
interface Completed {
  name: string
  summary: string
  flags: { long: string; meaning: string }[]
  /** Whether its first argument is a job. */
  takesJob: boolean
  /** Words that its first argument may be. */
  words: readonly string[]
}

/** Prints ids and names of jobs, one per line. `program` is the shell's expression for the program as it was typed, such as `./crucible`. */
const jobsOf = (program: string): string => `${program} jobs-for-completion 2>/dev/null`

/** The completion script of a shell, generated from the command tree. */
export function completionScript(program: Command, shell: Shell): string {
  const commands = program.commands
    .filter(({ _hidden }: Command & { _hidden?: boolean }) => _hidden !== true)
    .map(completed)
  const name = program.name()
  switch (shell) {
    case 'bash':
      return bash(name, commands)
    case 'zsh':
      return zsh(name, commands)
    case 'fish':
      return fish(name, commands)
  }
}

function completed(command: Command): Completed {
  const [first] = command.registeredArguments
  return {
    name: command.name(),
    summary: command.summary(),
    flags: command.options
      .filter(({ hidden, long }) => !hidden && long != null)
      .map(({ long, description }) => ({ long: long!, meaning: description })),
    takesJob: first?.name() === 'job',
    words: first?.argChoices ?? [],
  }
}

function bash(program: string, commands: Completed[]): string {
  const cases = commands.map(({ name, flags, takesJob, words }) => {
    const choices = takesJob ? `$(${jobsOf('"${COMP_WORDS[0]}"')})` : words.join(' ')
    return `    ${name}) flags='${flags.map(({ long }) => long).join(' ')}'; words="${choices}" ;;`
  })
  return [
    `# Completion of ${program} for bash. Put into ~/.bashrc:  eval "$(${program} completion bash)"`,
    `_${program}() {`,
    '  local current="${COMP_WORDS[COMP_CWORD]}" flags="" words=""',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W '${commands.map(({ name }) => name).join(' ')} help' -- "$current"))`,
    '    return',
    '  fi',
    '  case "${COMP_WORDS[1]}" in',
    ...cases,
    '  esac',
    '  case "$current" in',
    '    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;',
    '    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;',
    '  esac',
    '}',
    // Complete file names by default.
    `complete -o default -F _${program} ${program}`,
  ].join('\n')
}

function zsh(program: string, commands: Completed[]): string {
  const described = (word: string, meaning: string): string =>
    `'${word.replaceAll(':', '\\:')}:${meaning.replaceAll("'", "'\\''")}'`
  const cases = commands.map(({ name, flags, takesJob, words }) => {
    const shown = flags.map(({ long, meaning }) => described(long, meaning)).join(' ')
    const choices = takesJob ? `\${(f)"$(${jobsOf('$words[1]')})"}` : words.join(' ')
    return `    ${name}) flags=(${shown}); words_known=(${choices}) ;;`
  })
  return [
    `#compdef ${program}`,
    `# Completion of ${program} for zsh. Put into ~/.zshrc, after compinit:  eval "$(${program} completion zsh)"`,
    `_${program}() {`,
    '  local -a commands flags words_known',
    `  commands=(${commands.map(({ name, summary }) => described(name, summary)).join(' ')})`,
    '  if (( CURRENT == 2 )); then _describe -t commands command commands; return; fi',
    '  case $words[2] in',
    ...cases,
    '  esac',
    '  if [[ $PREFIX == -* ]]; then _describe -t flags flag flags',
    '  elif (( $#words_known )); then compadd -a words_known',
    '  else _files; fi',
    '}',
    `compdef _${program} ${program}`,
  ].join('\n')
}

function fish(program: string, commands: Completed[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ name, summary, flags, takesJob, words }) => {
    const within = `complete -c ${program} -n '__fish_seen_subcommand_from ${name}'`
    return [
      `complete -c ${program} -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...flags.map(({ long, meaning }) => `${within} -l ${long.slice(2)} -d ${quoted(meaning)}`),
      ...(takesJob ? [`${within} -f -a '(${jobsOf('(commandline -opc)[1]')})'`] : []),
      ...(words.length > 0 ? [`${within} -f -a '${words.join(' ')}'`] : []),
    ]
  })
  return [
    `# Completion of ${program} for fish:  ${program} completion fish > ~/.config/fish/completions/${program}.fish`,
    ...lines,
  ].join('\n')
}
