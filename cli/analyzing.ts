import { statSync } from 'node:fs'
import { basename, dirname, extname, isAbsolute, relative, resolve } from 'node:path'
import { projectFiles, readScript } from '../client/analysis/project-files'
import { inWorker, type AnalysisWork } from '../client/analysis/thread'
import { CrucibleError } from '../client/errors'
import type * as jobFile from '../client/job/file'
import { undecodableName } from '../core/file-error'
import type { Analysis, Suggestion } from '../packages/analyzer/src/analyze'
import { JOB_FILES, noFileHere } from './job/no-file'

/** The command to analyze, and the folder in which it runs. */
interface Target {
  root: string
  /** Command to analyze; missing for a folder whose program must be found. */
  command: string | undefined
}

const PROGRAMS = ['.py', '.ipynb', '.sh']

/** A target as the user names it: a script, a folder or a job file, with the arguments of the script. */
interface Named {
  target: string
  scriptArguments: readonly string[]
  nowMs: number
}

/** Analyzes the target. Throws `usage` if it cannot be a program. */
export async function analyzeTarget(named: Named): Promise<Analysis> {
  return (await inWorker(workOf(named))).analysis
}

/**
 * Analyzes the target and adds a change that makes the program save and resume; its paths are relative to the folder in which the program
 * runs.
 */
export async function suggestForTarget(
  named: Named,
): Promise<{ analysis: Analysis; suggestion: Suggestion }> {
  const work = workOf(named)
  const { analysis, suggestion } = await inWorker({ ...work, isSuggestionWanted: true })
  const refused: Suggestion = { outcome: 'refused', diff: null, saves: null, reasons: analysis.obstacles }
  return { analysis, suggestion: suggestion ?? refused }
}

function workOf({ target, scriptArguments, nowMs }: Named): AnalysisWork {
  const { root, command } = targetOf(target, scriptArguments, nowMs)
  const isProgram = (path: string): boolean => path.endsWith('.py') || path.endsWith('.ipynb')
  if (command === undefined && !projectFiles(root).list().some(isProgram))
    throw new CrucibleError('usage', `${target} has no Python program.`, {
      hint: 'Name a folder with a script (.py) or a notebook (.ipynb), or the script itself.',
    })
  return { root, command, isSuggestionWanted: false }
}

function targetOf(named: string, scriptArguments: readonly string[], nowMs: number): Target {
  if (isFolder(named)) return { root: resolve(named), command: undefined }
  const read = readScript(named)
  if ('problem' in read) throw new CrucibleError('usage', `${named} ${read.problem}.`)
  if (!('text' in read))
    throw new CrucibleError(
      'usage',
      undecodableName(named) ?? noFileHere(named, 'script, a folder or a job file'),
    )
  const ending = extname(named).toLowerCase()
  if (JOB_FILES.includes(ending)) return targetOfJob(named, read.text, nowMs)
  if (!PROGRAMS.includes(ending))
    throw new CrucibleError(
      'usage',
      `${named} is neither a Python script (.py), a notebook (.ipynb), a shell script (.sh) nor a job file (.yaml).`,
      {
        hint: 'Name the script that trains.',
      },
    )
  return targetOfScript(named, scriptArguments)
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function targetOfJob(file: string, text: string, nowMs: number): Target {
  const { formatProblem, parseJobFile } = require('../client/job/file') as typeof jobFile
  const read = parseJobFile(text, { fileName: file, nowMs })
  if ('problems' in read)
    throw new CrucibleError('usage', read.problems.map(formatProblem).join('\n'), {
      details: { problems: read.problems },
    })
  const { spec, workdir } = read.job
  if (workdir === null)
    throw new CrucibleError(
      'usage',
      `${file} sends no code (workdir: false), so there is nothing to analyze.`,
    )
  return { root: resolve(dirname(file), workdir), command: spec.run }
}

/** Returns the target of a script. Like a submitted one, it runs in this folder, or in its own if it is elsewhere. */
function targetOfScript(file: string, scriptArguments: readonly string[]): Target {
  const path = relative(process.cwd(), file)
  const isOutside = path.startsWith('..') || isAbsolute(path)
  const script = isOutside ? basename(file) : path
  const program = script.endsWith('.sh') ? 'bash' : 'python'
  const command = [program, script, ...scriptArguments].map(quoted).join(' ')
  return { root: isOutside ? dirname(resolve(file)) : process.cwd(), command }
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
