/** Finds shell commands that go on, or end well, although a program of theirs has failed. */
import { shellCommands, type ShellCommand } from '../../core/shell'

/** Programs that do the work of a job: failures of `mkdir`, `rm` and the like are often ignored on purpose. */
const WORK =
  /^(?:(?:[\w.~-]*\/)*(?:python[\d.]*|torchrun|accelerate|deepspeed|horovodrun|mpirun|srun|make|uv|poetry|papermill|Rscript|julia)|\.{0,2}\/[\w./-]+)$/
/** A shell, as a command names it. */
export const SHELL = /^(?:\/(?:usr\/)?bin\/)?(?:ba|da|k|z)?sh$/
/** Words before the program of a simple command. */
const BEFORE = /^(?:\w+=.*|time|exec|nohup|env|then|else|do|\{|\()$/
const CONDITION = /^(?:if|elif|while|until)$/
const BLOCK_END = /^(?:fi|done|esac|\}|\))$/
/** Commands that drop the exit code of a substitution in their arguments. */
const DROPS = /^(?:echo|printf|export|local|declare|readonly|test|\[)$/
const ALWAYS_WELL = /^(?:true|:|echo|printf)$/

/** The text takes care of failures by an exit code of its own, or waits for each program in the background. */
const EXITS = /\b(?:exit|return)[ \t]+(?:"?\$|[1-9])|\bfalse\b/
const WAITS = /\bwait[ \t]+(?:-n|"?[$%\d])/

/** Clauses about what hides a failure, with the remedy. */
const WORDS = {
  alternative: '`|| true`, or the like, hides a failure: remove it',
  errexit: 'the commands go on after a failure: begin with `set -e`, and write no `set +e`',
  condition: 'a failure in a condition, such as `if`, ends nothing: add `exit 1` where it has failed',
  negation: '`!` turns a failure into a success: remove it',
  background: 'a failure in the background is not noticed, even by `wait` alone: use `wait "$pid"` for each',
  substitution: 'a failure in `$(...)` inside of another command is lost: assign it to a variable first',
  list: 'a failure before `&&` does not end the commands below: give each a line of its own',
  pipe: 'only the last part of a pipe decides: begin with `set -o pipefail`',
  trap: 'a trap ends with `exit 0`, whatever has failed: end it with `exit $?`',
} as const

/** How a shell treats failures. */
export interface Strictness {
  errexit: boolean
  pipefail: boolean
}

/** Reads it from the words that start a shell, such as `bash -eo pipefail`. */
export function strictnessOf(shell: string): Strictness {
  return { errexit: /\s-[a-z]*e/.test(shell), pipefail: /\bpipefail\b/.test(shell) }
}

/** Returns what hides a failure in commands, in clauses. */
export function hiddenFailures(commands: string, shell: Strictness): string[] {
  const parts = shellCommands(commands)
  const lastCommand = parts.findLastIndex(({ words: [first = ''] }) => !BLOCK_END.test(first))
  const isHandled = { background: WAITS.test(commands), others: EXITS.test(commands) }
  const found = new Set<string>()
  const state = { ...shell }
  let pipe = { end: -1, after: '' as ShellCommand['after'] }
  let listEnd = -1
  for (const [index, part] of parts.entries()) {
    const { words } = part
    if (index > pipe.end) pipe = pipeFrom(parts, index)
    if (index > listEnd) listEnd = endOf(parts, pipe.end, '&&')
    if (words[0] === 'set') setOptions(state, words.join(' '))
    if (words[0] === 'trap' && part.text.includes('exit 0')) found.add(WORDS.trap)
    for (const clause of innerFailures(words)) found.add(clause)
    if (DROPS.test(words[0] ?? '') && substituted(part.text).some((inner) => isWork(programOf(inner))))
      found.add(WORDS.substitution)
    if (!isWork(programOf(words))) continue
    const kind = hiddenBy({ part, pipe, next: parts[pipe.end + 1], isMore: lastCommand > listEnd }, state)
    if (
      kind === undefined ||
      (kind === 'background' ? isHandled.background : kind !== 'list' && isHandled.others)
    )
      continue
    found.add(WORDS[kind])
  }
  return [...found]
}

/** A program with its surroundings. */
interface Place {
  part: ShellCommand
  /** The operator after its pipe. */
  pipe: { after: ShellCommand['after'] }
  /** The command after its pipe. */
  next: ShellCommand | undefined
  /** Whether commands follow its list (`&&`). */
  isMore: boolean
}

/** Returns what hides a failure of a program, if anything does. */
function hiddenBy(
  { part, pipe: { after }, next, isMore }: Place,
  { errexit, pipefail }: Strictness,
): keyof typeof WORDS | undefined {
  if (CONDITION.test(part.words[0]!)) return 'condition'
  if (part.words[0] === '!') return 'negation'
  if (part.after === '|' && !pipefail) return 'pipe'
  if (after === '||') {
    const isWell =
      next !== undefined && (ALWAYS_WELL.test(next.words[0]!) || next.words.join(' ') === 'exit 0')
    return isWell ? 'alternative' : undefined
  }
  if (after === '&') return next === undefined ? undefined : 'background'
  if (!isMore) return undefined
  if (after === '&&') return 'list'
  return errexit ? undefined : 'errexit'
}

function pipeFrom(
  parts: readonly ShellCommand[],
  index: number,
): { end: number; after: ShellCommand['after'] } {
  const end = endOf(parts, index, '|')
  return { end, after: parts[end]!.after }
}

/** The last command that follows the one at the index by this operator alone. */
function endOf(parts: readonly ShellCommand[], index: number, operator: ShellCommand['after']): number {
  let end = index
  while (parts[end]!.after === operator && end + 1 < parts.length) end++
  return end
}

function setOptions(state: Strictness, text: string): void {
  if (/\s-[a-z]*e|-o errexit/.test(text)) state.errexit = true
  if (/\s\+[a-z]*e|\+o errexit/.test(text)) state.errexit = false
  if (/pipefail/.test(text)) state.pipefail = !/\+o pipefail/.test(text)
}

/** The commands of a shell that is started with some. */
function innerFailures(words: readonly string[]): string[] {
  const shell = words.findIndex((word) => SHELL.test(word))
  const flag = words.findIndex((word, index) => index > shell && /^-[a-z]*c$/.test(word))
  const commands = words[flag + 1]
  if (shell < 0 || flag < 0 || commands === undefined) return []
  return hiddenFailures(unquoted(commands), strictnessOf(words.slice(shell, flag + 1).join(' ')))
}

const isWork = (program: readonly string[]): boolean => {
  const [name = '', script = ''] = program
  return (
    WORK.test(name) ||
    ((SHELL.test(name) || name === '.' || name === 'source') &&
      /^[\w./-]+$/.test(script) &&
      !script.startsWith('-'))
  )
}

/** The words of a simple command from its program on, without quotes. */
export function programOf(words: readonly string[]): string[] {
  const first = words.findIndex((word) => !BEFORE.test(word) && !CONDITION.test(word) && word !== '!')
  return first < 0 ? [] : words.slice(first).map(unquoted)
}

function unquoted(word: string): string {
  return /^(["']).*\1$/s.test(word) ? word.slice(1, -1) : word
}

/** The words of the commands that a text evaluates in place. */
function substituted(text: string): string[][] {
  return text
    .split(/\$\(|`/)
    .slice(1)
    .map((inner) => inner.trim().split(/\s+/))
}
