import type { Command } from 'commander'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** What a shell needs to know about one command. */
interface Completed {
  name: string
  summary: string
  flags: { long: string; meaning: string }[]
  /** Its first argument is a job. */
  takesJob: boolean
  /** Words that its first argument may be. */
  words: readonly string[]
}

/** Prints ids and names of jobs, one per line. */
const JOBS = 'crucible jobs-for-completion 2>/dev/null'

/** The completion script of a shell, generated from the command tree. */
export function completionScript(program: Command, shell: Shell): string {
  const commands = program.commands
    .filter(({ _hidden }: Command & { _hidden?: boolean }) => _hidden !== true)
    .map(completed)
  switch (shell) {
    case 'bash':
      return bash(commands)
    case 'zsh':
      return zsh(commands)
    case 'fish':
      return fish(commands)
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

function bash(commands: Completed[]): string {
  const cases = commands.map(({ name, flags, takesJob, words }) => {
    const choices = takesJob ? `$(${JOBS})` : words.join(' ')
    return `    ${name}) flags='${flags.map(({ long }) => long).join(' ')}'; words="${choices}" ;;`
  })
  return [
    '# Completion of crucible for bash. Put into ~/.bashrc:  eval "$(crucible completion bash)"',
    '_crucible() {',
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
    'complete -o default -F _crucible crucible',
  ].join('\n')
}

function zsh(commands: Completed[]): string {
  const described = (word: string, meaning: string): string =>
    `'${word.replaceAll(':', '\\:')}:${meaning.replaceAll("'", "'\\''")}'`
  const cases = commands.map(({ name, flags, takesJob, words }) => {
    const shown = flags.map(({ long, meaning }) => described(long, meaning)).join(' ')
    const choices = takesJob ? `\${(f)"$(${JOBS})"}` : words.join(' ')
    return `    ${name}) flags=(${shown}); words_known=(${choices}) ;;`
  })
  return [
    '#compdef crucible',
    '# Completion of crucible for zsh. Put into ~/.zshrc, after compinit:  eval "$(crucible completion zsh)"',
    '_crucible() {',
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
    'compdef _crucible crucible',
  ].join('\n')
}

function fish(commands: Completed[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = commands.flatMap(({ name, summary, flags, takesJob, words }) => {
    const within = `complete -c crucible -n '__fish_seen_subcommand_from ${name}'`
    return [
      `complete -c crucible -n __fish_use_subcommand -f -a ${name} -d ${quoted(summary)}`,
      ...flags.map(({ long, meaning }) => `${within} -l ${long.slice(2)} -d ${quoted(meaning)}`),
      ...(takesJob ? [`${within} -f -a '(${JOBS})'`] : []),
      ...(words.length > 0 ? [`${within} -f -a '${words.join(' ')}'`] : []),
    ]
  })
  return [
    '# Completion of crucible for fish:  crucible completion fish > ~/.config/fish/completions/crucible.fish',
    ...lines,
  ].join('\n')
}
