/** The files that a job's commands start, as far as the text of the commands shows. */
import { readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { JobSpec } from '../../core/job/job'
import { shellCommands } from '../../core/shell'
import type { Tree } from '../../storage/bundle-tree'
import { isExecutable } from '../../storage/tarball'
import { hiddenFailures, programOf, SHELL, strictnessOf } from './hidden-failures'

/** Programs whose first non-option argument is a script. */
const INTERPRETER = /^(?:python[\d.]*|bash|sh)$/
/** Programs that start a Python script after their own options. */
const LAUNCHER = /^(?:torchrun|accelerate|deepspeed|horovodrun|mpirun)$/
/** Commands without an effect on the script. */
const HARMLESS = /^(?:pip3?|export|set|echo|nvidia-smi|ulimit|true|:)$/

/**
 * The file in the working directory that a command runs first, such as `train.py` in `python3 -u train.py --lr 3`. `undefined` if
 * that is uncertain, and after a change of folder.
 */
export function scriptOf(run: string): string | undefined {
  const { folder, script } = beginningOf(run)
  return folder === '.' ? script : undefined
}

/** The beginning of a command; paths are relative to the working directory. */
interface Beginning {
  /** The folder into which it has changed. */
  folder: string
  /** The file that it runs first; missing if that is uncertain. */
  script?: string
}

/** Reads the beginning of a command, as far as it is certain. */
export function beginningOf(run: string): Beginning {
  let folder = '.'
  for (const { words, after } of shellCommands(run)) {
    const [program = '', ...rest] = programOf(words)
    if (program === '' || HARMLESS.test(program)) continue
    if (program === 'cd') {
      const [target = '', ...more] = rest
      const next = posix.normalize(posix.join(folder, target, '.'))
      if (more.length > 0 || after === '||' || target.startsWith('/') || !isPlainPath(next)) return { folder }
      folder = next
      continue
    }
    const script = program.startsWith('./') ? program : scriptAmong(program, rest)
    if (script === undefined || script.startsWith('/')) return { folder }
    const path = posix.join(folder, script)
    return isPlainPath(path) ? { folder, script: path } : { folder }
  }
  return { folder }
}

function scriptAmong(program: string, words: readonly string[]): string | undefined {
  if (LAUNCHER.test(program)) return words.find((word) => word.endsWith('.py'))
  if (!INTERPRETER.test(program)) return undefined
  const first = words.findIndex((word) => !/^-[uOBIEsS]+$/.test(word))
  const script = words[first]
  // `-m module`, `-c code`, a pipe.
  return script === undefined || script.startsWith('-') ? undefined : script
}

/** Whether a path has no shell syntax and stays inside the folder. */
function isPlainPath(path: string): boolean {
  return /^[\w./+@=-]+$/.test(path) && !path.startsWith('/') && !posix.normalize(path).startsWith('..')
}

/** A file that a shell command starts. */
interface Called {
  /** Relative to the working directory. */
  path: string
  /** Started as a program; otherwise a shell reads it. */
  isProgram: boolean
  /** The shell that reads it, with its options, or `.` for the one that runs the command. */
  shell?: string
  /** The folder in which it starts, relative to the working directory. */
  folder: string
}

const SHELL_NAMED = /\b(?:ba|da|k|z)?sh\b/

/**
 * The files that shell commands start, up to the first place where their folder is uncertain.
 * @internal A test goes over forms of commands.
 */
export function calledFiles(commands: string, folder = '.'): Called[] {
  const found: Called[] = []
  let at = folder
  for (const { words } of shellCommands(commands)) {
    const [program = '', ...rest] = programOf(words)
    if (program === 'cd' || program === 'pushd') {
      const [target = '~'] = rest
      if (target.startsWith('/') || !isPlainPath(posix.join(at, target))) return found
      at = posix.join(at, target)
      continue
    }
    const isRead = SHELL.test(program) || program === '.' || program === 'source'
    // `-c` is followed by a command.
    const first = rest.findIndex((word) => !/^[-+][abd-z]+$|^pipefail$/.test(word))
    const file = isRead ? rest[first] : program
    if (file === undefined || file.startsWith('-') || !isPlainPath(file) || (!isRead && !file.includes('/')))
      continue
    const path = posix.join(at, file)
    const shell = program === 'source' ? '.' : [program, ...rest.slice(0, first)].join(' ')
    if (isPlainPath(path)) found.push({ path, isProgram: !isRead, folder: at, ...(isRead && { shell }) })
  }
  return found
}

/** A larger file is not a script. */
const SCRIPT_BYTES_MAX = 256 * 1024

/** A file that is sent along and that the job's commands start, or a script that they start. */
interface Started extends Called {
  entry: Extract<Tree['entries'][number], { kind: 'file' }>
  /** Empty if it is too large for a script. */
  text: string
  /** The program that runs it, with its options, if the first line names one. */
  interpreter: string
}

/** Returns the files that are sent along and that the job's commands start, and those that these start. */
export async function startedScripts(
  { run, setup = '' }: Pick<JobSpec, 'run' | 'setup'>,
  { root, entries }: { root: string; entries: Tree['entries'] },
): Promise<Started[]> {
  const waiting = [...calledFiles(setup), ...calledFiles(run)]
  const seen = new Set<string>()
  const found: Started[] = []
  for (let called = waiting.pop(); called !== undefined; called = waiting.pop()) {
    const { path, isProgram, folder } = called
    const key = `${path} ${isProgram}`
    const entry = entries.find((one) => one.path === path)
    if (seen.has(key) || entry?.kind !== 'file') continue
    seen.add(key)
    // Packing names a file that disappears meanwhile.
    const text =
      entry.sizeBytes > SCRIPT_BYTES_MAX ? '' : await readFile(join(root, path), 'latin1').catch(() => '')
    const [first = ''] = text.split('\n', 1)
    const interpreter = first.startsWith('#!') ? first.slice(2) : ''
    found.push({ ...called, entry, text, interpreter })
    if (!isProgram || SHELL_NAMED.test(interpreter)) waiting.push(...calledFiles(text, folder))
  }
  return found
}

/** Returns why files that a job's commands start cannot run on a machine, in sentences with the remedy. */
export function scriptProblems(
  { run, setup = '' }: Pick<JobSpec, 'run' | 'setup'>,
  scripts: readonly Started[],
): string[] {
  const commands = `${setup}\n${run}`
  const problems = new Map<string, string>()
  for (const { path, isProgram, entry, text, interpreter } of scripts) {
    if (isProgram && !isExecutable(entry) && !/\bchmod\b/.test(commands))
      problems.set(path, unexecutable(path))
    const isBroken = isProgram ? interpreter.endsWith('\r') : isOfWindows(text)
    if (isBroken && !/\bdos2unix\b|\bsed\b/.test(commands)) problems.set(`${path}\r`, ofWindows(path))
  }
  return [...problems.values()]
}

/** Returns a warning for each text in which the failure of a program would be hidden. */
export function hiddenFailureWarnings(
  { run, setup = '', shell = 'bash -eo pipefail' }: Pick<JobSpec, 'run' | 'setup' | 'shell'>,
  scripts: readonly Started[],
): string[] {
  const texts = SHELL.test(shell.split(' ', 1)[0]!) ? [{ place: 'run', text: run, shell }] : []
  if (texts.length > 0 && setup !== '') texts.unshift({ place: 'setup', text: setup, shell })
  for (const { path, isProgram, text, interpreter, shell: reader = '' } of scripts)
    if (!isProgram || SHELL_NAMED.test(interpreter))
      texts.push({ place: path, text, shell: isProgram ? interpreter : reader === '.' ? shell : reader })
  return texts.flatMap((one) => {
    const clauses = hiddenFailures(one.text, strictnessOf(one.shell))
    return clauses.length === 0
      ? []
      : [`The job can end well although a program of it fails. In ${one.place}: ${clauses.join('; ')}.`]
  })
}

function unexecutable(path: string): string {
  return `The job starts ${path}, which is not executable: \`chmod +x ${path}\`, or start it with its interpreter, such as \`sh ${path}\`.`
}

function ofWindows(path: string): string {
  return `The job starts ${path}, whose lines end with a carriage return, as Windows writes them, so no machine can run it. Convert it: \`sed -i 's/\\r$//' ${path}\`.`
}

/** Whether most lines end with a carriage return. */
function isOfWindows(text: string): boolean {
  const ends = text.match(/\r?\n/g) ?? []
  return ends.filter((end) => end === '\r\n').length * 2 > ends.length
}
