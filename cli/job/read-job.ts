import { readFile } from 'node:fs/promises'
import { basename, dirname, extname, isAbsolute, relative, resolve } from 'node:path'
import { CrucibleError } from '../../client/errors'
import { checkJobId, findJob, submissionWithId } from '../../client/job/find-job'
import {
  fieldsOf,
  formatProblem,
  parseJobFile,
  parseJobObject,
  peerProblem,
  slurmScriptOf,
  writtenFields,
  type JobFields,
  type JobOrProblems,
  type PeerFile,
} from '../../client/job/file'
import { preflight } from '../../client/job/preflight'
import type { Submission } from '../../client/job/submit'
import { undecodableName } from '../../core/file-error'
import type { JobSpec } from '../../core/job/job'
import type * as filling from '../filling'
import type * as registry from '../../backends/registry'
import type { Cli } from '../cli'
import { shellQuoted } from '../kit/shell'
import { flagOf, withFlags } from './flags'
import { JOB_FILES, noFileHere, suchAs } from './no-file'

/** User input: a file, the script's arguments, and flags. */
export interface JobArguments {
  file: string | undefined
  scriptArguments: string[]
  flags: Readonly<Record<string, unknown>> & {
    id?: string
    from?: string
    fresh?: boolean
    workdir?: string
    analyze?: boolean
  }
}

/** A job before the flags are applied. */
interface Base {
  fields: JobFields
  name: string
  /** Folder as in `Submission.directory`. */
  directory: string | null | undefined
}

/**
 * Builds a submission from user input. Throws `usage` with all problems at once, each with its position or flag.
 * @param now the time from which a deadline given as a duration counts
 */
export async function readJob(
  cli: Cli,
  given: JobArguments,
  now: () => Promise<number> = async () => cli.now(),
): Promise<Submission> {
  const { flags } = given
  if (flags.id !== undefined) checkJobId(flags.id)
  if (flags.fresh === true && flags.from === undefined) {
    throw new CrucibleError('usage', '--fresh requires --from: any other job starts from the beginning.')
  }
  const from = flags.from === undefined ? undefined : await findJob(cli.context(), flags.from)
  const readAt = async (nowMs: number) => {
    const base = await baseOf(cli, given, { from, nowMs })
    const fields = withFlags(base.fields, flags)
    const options = { flagOf: flagOf(flags), defaultName: base.name, nowMs }
    const { spec } = accept(parseJobObject(fields, options))
    return { base, fields, options, spec }
  }
  const submittedAtMs = await submissionTime(cli, flags.id)
  let read = await readAt(submittedAtMs ?? cli.now())
  if (submittedAtMs === undefined && read.spec.deadlineAtMs !== undefined) read = await readAt(await now())
  const { base, fields, options, spec } = read
  const directory = flags.workdir === undefined ? base.directory : folderOf(flags.workdir)
  const isAsked = flags['yes'] !== true && cli.confirmsSubmit && cli.out.isTerminal
  return {
    spec:
      flags.analyze === true ? await filledSpec(cli, { fields, spec, directory, options, isAsked }) : spec,
    directory,
    id: flags.id,
    from,
    isFresh: flags.fresh || undefined,
    // It was read above, unless --no-analyze says not to.
    isAnalyzed: false,
  }
}

/** Returns the spec with settings from the program for those left open. */
async function filledSpec(
  cli: Cli,
  {
    fields,
    spec,
    directory,
    options,
    isAsked,
  }: {
    fields: JobFields
    spec: JobSpec
    directory: string | null | undefined
    options: Parameters<typeof parseJobObject>[1]
    isAsked: boolean
  },
): Promise<JobSpec> {
  // The code of an earlier job was read when it was submitted.
  if (typeof directory !== 'string') return spec
  const { fillFromProgram } = require('../filling') as typeof filling
  const filled = await fillFromProgram(cli, fields, {
    run: spec.run,
    directory,
    accelerators: spec.resources.accelerators,
    isAsked,
  })
  if (filled.settings.length === 0) return spec
  return { ...accept(parseJobObject(filled.fields, options)).spec, inferred: filled.settings }
}

/** Reads a job like `readJob`, refuses jobs with known errors, and notes possible ones, which it also returns. */
export async function readCheckedJob(
  cli: Cli,
  given: JobArguments,
): Promise<{ submission: Submission; warnings: string[] }> {
  const submission = await readJob(cli, given, () => cli.presentTime())
  const { BACKENDS } = require('../../backends/registry') as typeof registry
  const warnings = await preflight(cli.context(), submission, Object.keys(BACKENDS))
  for (const warning of warnings) cli.out.warn(warning)
  return { submission, warnings }
}

/** The time of an earlier submission with the id: a repeated one counts its deadline from that, so that both are the same. */
async function submissionTime(cli: Cli, id: string | undefined): Promise<number | undefined> {
  if (id === undefined) return undefined
  return (await submissionWithId(cli.context(), id).catch(() => undefined))?.submittedAtMs
}

async function baseOf(
  cli: Cli,
  { file, scriptArguments }: JobArguments,
  { from, nowMs }: { from: string | undefined; nowMs: number },
): Promise<Base> {
  if (file === undefined || file.trim() === '') {
    if (from !== undefined) return baseFrom(cli, from)
    throw new CrucibleError('usage', 'Nothing to submit.', {
      hint: 'Name a job file (job.yaml), a script (train.py), or an earlier job (--from JOB).',
    })
  }
  const ending = extname(file).toLowerCase()
  if (ending === '.py') return baseOfScript(file, scriptArguments)
  if (!JOB_FILES.includes(ending)) {
    const slurm = slurmScriptOf(await readText(file))
    if (slurm !== undefined) throw new CrucibleError('usage', ofSlurm(file, slurm))
    throw new CrucibleError('usage', `${file} is neither a job file (.yaml) nor a Python script (.py).`, {
      hint:
        ending === '.ipynb'
          ? `Convert the notebook first: \`jupyter nbconvert --to script ${shellQuoted(file)}\`.`
          : `For any other program write a job file with "run: ./${basename(file)}".`,
    })
  }
  if (scriptArguments.length > 0) {
    const surplus = scriptArguments.map(shellQuoted).join(' ')
    throw new CrucibleError(
      'usage',
      `Only a script takes arguments, and ${file} is a job file: ${surplus}.`,
      {
        hint: 'Write arguments of the program into its run or script field, and submit each job with its own command.',
      },
    )
  }
  return baseOfFile(file, nowMs)
}

function ofSlurm(file: string, { what, keys }: PeerFile): string {
  const run = `run: bash ${basename(file)}`
  return formatProblem({ file, ...peerProblem({ what, keys: [`the command is ${run}`, ...keys] }) })
}

async function baseOfFile(file: string, nowMs: number): Promise<Base> {
  const text = await readText(file)
  const { spec, workdir } = accept(parseJobFile(text, { fileName: file, nowMs }))
  const directory = workdir === null ? null : resolve(dirname(file), workdir)
  const { interruptible, ...rest } = fieldsOf(spec, nowMs)
  const fields = writtenFields(text).includes('interruptible') ? { ...rest, interruptible } : rest
  return { fields, name: spec.name, directory }
}

/** Returns the folder in which a script runs: this folder, which is sent along, or its own if it is outside. */
async function baseOfScript(file: string, scriptArguments: string[]): Promise<Base> {
  checkScriptArguments(file, await readText(file), scriptArguments)
  const path = relative(process.cwd(), file)
  const isOutside = path.startsWith('..') || isAbsolute(path)
  const directory = isOutside ? dirname(resolve(file)) : process.cwd()
  const words = [isOutside ? basename(file) : path, ...scriptArguments]
  return {
    fields: { run: `python3 ${words.map(shellQuoted).join(' ')}` },
    name: basename(file, extname(file)),
    directory,
  }
}

/** Flags that keep a submission from happening or from costing more. */
const LIMITS = ['--dry-run', '--budget', '--deadline', '--max-price']

/** Refuses a limit that would go to a script which does not mention it, because the person relies on it. */
function checkScriptArguments(file: string, text: string, scriptArguments: readonly string[]): void {
  const misplaced = scriptArguments
    .map((word) => word.split('=')[0]!)
    .find(
      (word) =>
        LIMITS.includes(word) &&
        !text.includes(word.slice(2)) &&
        !text.includes(word.slice(2).replaceAll('-', '_')),
    )
  if (misplaced === undefined) return
  throw new CrucibleError(
    'usage',
    `${misplaced} after -- is an argument of ${file}, which does not mention it.`,
    {
      hint: `Write ${misplaced} before --. If the program does read it, name the whole command in a job file: run: python3 ${file} ...`,
    },
  )
}

async function baseFrom(cli: Cli, from: string): Promise<Base> {
  const { spec, submittedAtMs } = (await submissionWithId(cli.context(), from))!
  return { fields: fieldsOf(spec, submittedAtMs), name: spec.name, directory: undefined }
}

function folderOf(workdir: string): string | null {
  return workdir === 'none' ? null : resolve(workdir)
}

/**
 * Reads a text.
 * @param what kind of file, for messages
 */
export async function readText(file: string, what = 'job file or script'): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT')
      throw new CrucibleError('usage', undecodableName(file) ?? noFileHere(file, what), { cause: error })
    if (code === 'EISDIR')
      throw new CrucibleError('usage', `${file} is a folder: name the ${what} in it${suchAs(file)}.`)
    throw error
  }
}

function accept(read: JobOrProblems): Extract<JobOrProblems, { job: unknown }>['job'] {
  if ('job' in read) return read.job
  throw new CrucibleError('usage', read.problems.map(formatProblem).join('\n'), {
    details: { problems: read.problems },
  })
}
