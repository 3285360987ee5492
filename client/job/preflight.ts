/** Problems of a job that can be found before anything is sent: shown by `plan` and `--dry-run`, and refused by `submit`. */
import { basename, posix } from 'node:path'
import { ACCELERATORS, findAccelerator } from '../../core/accelerators'
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import { nearest } from '../../intake/nearest'
import { BUNDLE_LIMITS } from '../../storage/bundles'
import { readTree } from '../../storage/bundle-tree'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import type { Submission } from './submit'

/** Throws `usage` with every problem; returns warnings about possible ones. */
export async function preflight(
  context: Context,
  submission: Submission,
  knownBackends: readonly string[],
): Promise<string[]> {
  const { spec } = submission
  const problems = [
    ...(await missingScript(submission)),
    ...unknownBackends(
      spec.backends.map(({ backend }) => backend),
      knownBackends,
    ),
    ...unsetSecrets(context, spec),
  ]
  if (problems.length > 0) throw new CrucibleError('usage', problems.join('\n'), { details: { problems } })
  return unknownAccelerators(spec)
}

/** The secrets that a job needs and that are not set here, as a sentence with the remedy. */
export function unsetSecrets({ config }: Context, spec: JobSpec): string[] {
  const missing = secretsNeeded(spec).filter((name) => config.environment[name] === undefined)
  if (missing.length === 0) return []
  const [what, verb, them] = missing.length === 1 ? ['secret', 'is', 'it'] : ['secrets', 'are', 'them']
  return [
    `The job needs the ${what} ${missing.join(', ')}, which ${verb} not set here. Set ${them} in the environment of this command, such as \`${missing[0]}=... crucible submit ...\`.`,
  ]
}

/** Describes each backend that does not exist, with the existing ones. */
export function unknownBackends(names: readonly string[], known: readonly string[]): string[] {
  const unknown = [...new Set(names)].filter((name) => !known.includes(name))
  return unknown.map((name) => `Unknown backend ${name}.${meant(name, known)} Known: ${known.join(', ')}.`)
}

/** Returns accelerators that are missing from our table. They are allowed, because a model may be newer than the table. */
function unknownAccelerators({ resources }: JobSpec): string[] {
  const names = ACCELERATORS.map(({ name }) => name)
  const unknown = (resources.accelerators ?? []).filter((name) => findAccelerator(name) === undefined)
  return unknown.map(
    (name) =>
      `Unknown accelerator ${name}: only machines that report this name will match.${meant(name, names)}`,
  )
}

function meant(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates)
  return near === undefined ? '' : ` Did you mean ${near}?`
}

/** Limit on the files searched for similar names. */
const LOOKED_AT_MAX = 10 * BUNDLE_LIMITS.files

/** The command's script, if it would be sent along but does not exist. */
async function missingScript({ spec, directory }: Submission): Promise<string[]> {
  // The code of an earlier job ran before.
  if (directory === undefined) return []
  const script = scriptOf(spec.run)
  const isMadeOtherwise = spec.setup !== undefined || spec.inputs.some(({ path }) => path === script)
  if (script === undefined || isMadeOtherwise) return []
  if (directory === null) {
    if (spec.image !== undefined) return []
    return [
      `The command runs ${script}, but nothing is sent along. Set its folder with workdir or --workdir.`,
    ]
  }
  const leaveOut = spec.checkpoint.directory === undefined ? [] : [spec.checkpoint.directory]
  const { entries, isWhole } = await readTree(directory, leaveOut, LOOKED_AT_MAX)
  const files = entries.filter(({ kind }) => kind !== 'folder').map(({ path }) => path)
  const isBehindLink = entries.some(({ kind, path }) => kind === 'link' && script.startsWith(`${path}/`))
  if (!isWhole || isBehindLink || files.includes(script)) return []
  const near = nearest(script, files) ?? files.find((path) => basename(path) === basename(script))
  return [
    `The command runs ${script}, which is not among the files that are sent along from ${directory}.${near === undefined ? '' : ` Did you mean ${near}?`}`,
  ]
}

/** Programs whose first non-option argument is a script. */
const INTERPRETER = /^(?:python[\d.]*|bash|sh)$/
/** Programs that start a Python script after their own options. */
const LAUNCHER = /^(?:torchrun|accelerate|deepspeed|horovodrun|mpirun)$/
/** Commands without an effect on the script. */
const HARMLESS = /^(?:pip3?|export|set|echo|nvidia-smi|ulimit|true|:)$/

/**
 * The file in the working directory that a command runs first, such as `train.py` in `python3 -u train.py --lr 3`. `undefined` if
 * that is uncertain.
 * @internal A test goes over forms of commands.
 */
export function scriptOf(run: string): string | undefined {
  for (const line of run.split(/\n|&&|;/)) {
    const words = line.trim().split(/\s+/)
    while (/^\w+=/.test(words[0] ?? '')) words.shift()
    if (words[0] === 'exec') words.shift()
    const [program = '', ...rest] = words
    if (program === '' || program.startsWith('#') || HARMLESS.test(program)) continue
    const script = program.startsWith('./') ? program : scriptAmong(program, rest)
    return script !== undefined && isPlainPath(script) ? posix.normalize(script) : undefined
  }
  return undefined
}

function scriptAmong(program: string, words: string[]): string | undefined {
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
