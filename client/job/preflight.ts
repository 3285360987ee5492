/** Problems of a job that can be found before anything is sent: shown by `plan` and `--dry-run`, and refused by `submit`. */
import { existsSync } from 'node:fs'
import { basename, posix } from 'node:path'
import { ACCELERATORS, findAccelerator } from '../../core/accelerators'
import { isCoded, messageOf } from '../../core/errors'
import { secretsNeeded, type JobSpec } from '../../core/job/job'
import { nearest } from '../../intake/nearest'
import { BUNDLE_LIMITS, readPackable } from '../../storage/bundles'
import type { Tree } from '../../storage/bundle-tree'
import type { Context } from '../context'
import { CrucibleError } from '../errors'
import { leftOutOf } from './bundle'
import { leftOutWarnings } from './left-out'
import { beginningOf, hiddenFailureWarnings, scriptProblems, startedScripts } from './scripts'
import { secretProblems, secretWarnings } from './secrets'
import { shellWarnings } from './shell-warnings'
import type { Submission } from './submit'

/** Throws `usage` with every problem; returns warnings about possible ones. */
export async function preflight(
  context: Context,
  submission: Submission,
  knownBackends: readonly string[],
): Promise<string[]> {
  const { spec, directory } = submission
  const { tree, problem } = await packableOf(submission)
  const scripts =
    tree === undefined ? [] : await startedScripts(spec, { root: directory!, entries: tree.entries })
  const problems = [
    ...(problem === undefined ? [] : [problem]),
    ...missingScript(submission, tree),
    ...missingRequirements(submission, tree),
    ...scriptProblems(spec, scripts),
    ...unknownBackends(
      spec.backends.map(({ backend }) => backend),
      knownBackends,
    ),
    ...secretProblems(context, secretsNeeded(spec)),
  ]
  if (problems.length > 0) throw new CrucibleError('usage', problems.join('\n'), { details: { problems } })
  return [
    ...(tree?.warnings ?? []),
    ...(tree === undefined ? [] : await leftOutWarnings(spec, { root: directory!, entries: tree.entries })),
    ...secretWarnings(context, spec),
    ...shellWarnings(spec),
    ...hiddenFailureWarnings(spec, scripts),
    ...missingInputs(context, submission),
    ...unknownAccelerators(spec),
  ]
}

/** Backends by other names of their providers. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = {
  amazon: 'ec2',
  aws: 'ec2',
  'lambda-cloud': 'lambda',
  'lambda-labs': 'lambda',
  lambdalabs: 'lambda',
  localhost: 'local',
}

/** Describes each backend that does not exist, with the existing ones. */
export function unknownBackends(names: readonly string[], known: readonly string[]): string[] {
  const unknown = [...new Set(names)].filter((name) => !known.includes(name))
  return unknown.map((name) => {
    const near = meant(PROVIDER_NAMES[name.toLowerCase()] ?? name, known)
    return `Unknown backend ${name}.${near} Known: ${known.join(', ')}.`
  })
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

/** The files that would be sent along; the problem if they would be refused; neither without a folder. */
async function packableOf({ spec, directory }: Submission): Promise<{ tree?: Tree; problem?: string }> {
  if (typeof directory !== 'string') return {}
  const leaveOut = leftOutOf(spec.checkpoint)
  try {
    return { tree: await readPackable({ directory, leaveOut, limits: BUNDLE_LIMITS }) }
  } catch (error) {
    if (isCoded(error, 'bundle')) return { problem: messageOf(error) }
    throw error
  }
}

/** The lists of packages that the first command of a job installs, and that are not sent along. */
function missingRequirements({ spec }: Submission, tree: Tree | undefined): string[] {
  const [first = ''] = (spec.setup ?? spec.run).split(/\n|&&|;/)
  const path = /^\s*(?:\S+ -m )?pip3? install (?:[^|<>]* )?(?:-r|--requirement)[ =]([\w./-]+)/.exec(
    first,
  )?.[1]
  if (tree === undefined || path === undefined || path.startsWith('/') || path.startsWith('..')) return []
  const meant = posix.normalize(path)
  const isBrought = spec.inputs.some((input) => input.path === meant)
  if (
    isBrought ||
    tree.entries.some(
      (entry) => entry.path === meant || (entry.kind === 'link' && meant.startsWith(`${entry.path}/`)),
    )
  )
    return []
  return [`pip installs the packages of ${path}, which is not among the files that are sent along.`]
}

/** The script of the command, or the folder into which it changes before, if it would be sent along but does not exist. */
function missingScript({ spec, directory }: Submission, tree: Tree | undefined): string[] {
  // The code of an earlier job ran before.
  if (directory === undefined || spec.setup !== undefined) return []
  const { folder, script } = beginningOf(spec.run)
  const entries = tree?.entries ?? []
  const hasFolder = entries.some(({ path }) => path === folder || path.startsWith(`${folder}/`))
  // Without `-e`, a command continues in its old folder.
  const isStrict = spec.shell === undefined && !/\bset \+/.test(spec.run)
  if (folder !== '.' && !isStrict) return []
  const path = folder === '.' || hasFolder ? script : folder
  if (path === undefined) return []
  const places = spec.inputs.map((input) => input.path)
  const own = [...places, ...spec.outputs, spec.checkpoint.directory ?? '']
  if (
    places.some((one) => isWithin(one, path)) ||
    (path === folder && own.some((one) => isWithin(folder, one)))
  )
    return []
  const does = `The command ${path === folder ? 'changes into' : 'runs'} ${path}`
  if (directory === null) {
    if (spec.image !== undefined) return []
    return [`${does}, but nothing is sent along. Set its folder with workdir or --workdir.`]
  }
  const files = entries.filter(({ kind }) => kind !== 'folder').map((entry) => entry.path)
  const isBehindLink = entries.some((entry) => entry.kind === 'link' && isWithin(entry.path, path))
  if (tree === undefined || isBehindLink || files.includes(path)) return []
  const known = path === folder ? entries.map((entry) => entry.path) : files
  const near = nearest(path, known) ?? known.find((one) => basename(one) === basename(path))
  return [
    `${does}, which is not among the files that are sent along from ${directory}.${near === undefined ? ' Another folder is set with workdir.' : ` Did you mean ${near}?`}`,
  ]
}

/** Whether a path is a folder or leads into it. */
function isWithin(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** Warns about input files that do not exist here, if the store is a folder, so that the machines are here too. */
function missingInputs({ store }: Context, { spec: { inputs } }: Submission): string[] {
  if (!store.url.startsWith('file:')) return []
  // A percent sign may stand for another character.
  const files = inputs.filter(({ source }) => /^file:\/\/\/[^%?#]*$/.test(source))
  return files
    .filter(({ source }) => !existsSync(source.slice('file://'.length)))
    .map(
      ({ source }) =>
        `The input ${source} does not exist on this computer. The job fails on a machine that lacks it.`,
    )
}
