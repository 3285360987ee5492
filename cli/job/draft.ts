/** The job file that `crucible init` writes for a program. */
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, isAbsolute, join, relative, resolve } from 'node:path'
import { stringify } from 'yaml'
import { CrucibleError } from '../../client/errors'
import { formatProblem, parseJobFile, type JobFields } from '../../client/job/file'
import { nameFrom } from '../../intake/fields'
import type { InferredSetting } from '../../core/job/job'
import { analyzeTarget } from '../analyzing'
import type { Cli } from '../cli'
import { fillFromProgram, pathFromHere } from '../filling'
import { shellQuoted } from '../kit/shell'
import { suchAs } from './no-file'
import type { InitOptions } from '../commands/job/init'

/** A program, and the folder in which it runs. */
interface Program {
  directory: string
  /** The script, relative to the folder. */
  script: string
}

const FILE = 'job.yaml'
const REQUIREMENTS = 'requirements.txt'

/** Writes the job file of a program. Throws `usage` if no program is found, or a file would be replaced. */
export async function draftJobFile(
  cli: Cli,
  given: { target: string; scriptArguments: readonly string[]; options: InitOptions },
): Promise<void> {
  const { target, scriptArguments, options } = given
  const program = await programOf(cli, target, scriptArguments)
  const { directory, script } = program
  const file = options.output === undefined ? join(directory, FILE) : resolve(options.output)
  const run = ['python3', script, ...scriptArguments].map(shellQuoted).join(' ')
  const name = nameFrom(basename(script, extname(script)))
  const { fields, settings } = await fillFromProgram(cli, { name, run }, { run, directory })
  const workdir = relative(dirname(file), directory)
  const setup = existsSync(join(directory, REQUIREMENTS)) ? `pip install -r ${REQUIREMENTS}` : undefined
  const text = textOf({ ...fields, setup, workdir: workdir === '' ? undefined : workdir }, settings)
  checkText(text, { file, nowMs: cli.now() })
  write(file, text, options.force === true)
  const shown = pathFromHere(file)
  cli.out.json({ file, text, inferred: settings })
  cli.out.line(
    cli.asCalled(`Wrote ${shown}. See where the job would run: \`crucible plan ${shellQuoted(shown)}\`.`),
  )
}

async function programOf(cli: Cli, target: string, scriptArguments: readonly string[]): Promise<Program> {
  const { entry } = await analyzeTarget({ target, scriptArguments, nowMs: cli.now() })
  if (existsSync(target) && statSync(target).isDirectory()) {
    const script = entry ?? onlyScriptOf(target)
    return { directory: resolve(target), script: scriptOrThrow(target, script) }
  }
  const path = relative(process.cwd(), target)
  const isOutside = path.startsWith('..') || isAbsolute(path)
  const directory = isOutside ? dirname(resolve(target)) : process.cwd()
  return { directory, script: scriptOrThrow(target, entry) }
}

/** The script of a folder in which nothing shows which program trains. */
function onlyScriptOf(folder: string): string | null {
  const scripts = readdirSync(folder).filter((name) => name.endsWith('.py'))
  return scripts.length === 1 ? scripts[0]! : null
}

function scriptOrThrow(target: string, script: string | null): string {
  if (script !== null && extname(script) === '.py') return script
  const several = suchAs(target, ['.py'])
  if (script === null && several !== '')
    throw new CrucibleError('usage', `Nothing shows which program of ${resolve(target)} trains.`, {
      hint: `Name it${several}: \`crucible init SCRIPT\`.`,
    })
  throw new CrucibleError('usage', `${target} shows no Python script that a job could run.`, {
    hint: 'Name the script (.py). A notebook must be converted first: `jupyter nbconvert --to script NOTEBOOK`.',
  })
}

/** The order of fields in the file; others follow. */
const ORDER = ['name', 'run', 'setup', 'workdir', 'resources', 'work_family', 'interruptible', 'checkpoint']

/** Fields that no program shows, as a person may add them. */
const OPEN = `
# Add what the program does not show:
# duration: 6h      # your estimate of the training time, to compare offers
# budget: $25       # the most that the job may cost
# deadline: 36h     # when it must be over
`

function textOf(fields: JobFields, settings: readonly InferredSetting[]): string {
  const names = [...new Set([...ORDER, ...Object.keys(fields)])].filter((name) => fields[name] !== undefined)
  const parts = names.map((name) => {
    const reasons = settings.filter(({ field }) => field.split('.')[0] === name)
    const comments = reasons.map(
      ({ field, reason, from }) => `# ${field}: ${reason}${from === null ? '' : ` (${from})`}\n`,
    )
    return `${comments.join('')}${stringify({ [name]: fields[name] }, { lineWidth: 0 })}`
  })
  return `${parts.join('')}${OPEN}`
}

/** Every file that this program writes can be read by it. */
function checkText(text: string, { file, nowMs }: { file: string; nowMs: number }): void {
  const read = parseJobFile(text, { fileName: file, nowMs })
  if ('job' in read) return
  throw new CrucibleError('usage', read.problems.map(formatProblem).join('\n'), {
    hint: 'Write the job file by hand, or change the arguments.',
  })
}

function write(file: string, text: string, isForced: boolean): void {
  try {
    writeFileSync(file, text, { flag: isForced ? 'w' : 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new CrucibleError('usage', `${pathFromHere(file)} already exists.`, {
        hint: 'Write another file with --output, or replace it with --force.',
      })
    if (code === 'ENOENT' && !existsSync(dirname(file)))
      throw new CrucibleError('usage', `There is no folder ${dirname(file)}.`, { cause: error })
    throw error
  }
}
