/**
 * Reads a training script without running it, and reports what a job needs to know of it, each finding with its place in the source and
 * with how sure it is. Texts and the grammar are arguments: nothing is read, started or guessed from names of files alone.
 */
import { runBlock } from './statements'
import { callFunction } from './definitions'
import { dispatch } from './calls'
import { evaluate } from './expressions'
import { gatherFacts, isCalled, type Facts } from './facts'
import { findCheckpoints } from './findings/checkpoints'
import { findDevices } from './findings/devices'
import { findCli, findFramework } from './findings/framework'
import { findMemory } from './findings/memory'
import { findData, findModel } from './findings/models'
import { findRunTime } from './findings/run-time'
import { findSettings } from './findings/settings'
import { findWorkFamily } from './findings/work-family'
import { modelsOf } from './memory/models'
import { firstLine, Interpreter, type Reading } from './interpreter'
import { findEntry, readCommands, type Launch } from './launch'
import { Project, type ProjectFiles } from './project'
import { ANALYSIS_VERSION, nothingFound, POSSIBLE, type Analysis, type Findings } from './report'
import { suggestResume, type Suggestion } from './suggest/suggest'
import type { PythonParser } from './syntax'
import type { CallEvent } from './values'

export { loadPython, type PythonParser } from './syntax'
export type { ProjectFiles } from './project'
export type { Suggestion } from './suggest/suggest'
export type { Analysis, FindingName } from './report'

export interface AnalysisRequest {
  files: ProjectFiles
  /** The command that starts the program, such as `torchrun train.py --resume`; missing to look for the program. */
  command?: string | undefined
}

const READING: Reading = { evaluate, runBlock, callFunction, dispatch }

/** Analyzes a program. Never throws for the content of files: unreadable parts are obstacles in the answer. */
export function analyze(parser: PythonParser, request: AnalysisRequest): Analysis {
  return read(parser, request).analysis
}

/** The analysis, and a change of the program that makes it save and resume. */
export function analyzeAndSuggest(
  parser: PythonParser,
  request: AnalysisRequest,
): { analysis: Analysis; suggestion: Suggestion } {
  const { analysis, facts } = read(parser, request)
  return { analysis, suggestion: suggestResume(parser, analysis, facts) }
}

/** A program that was read. Facts are missing where no program was found. */
interface Read {
  analysis: Analysis
  facts?: Facts
}

/** More programs of one command are not tried. */
const PROGRAMS_MAX = 6

/** Reads the program that a command starts, or that a folder holds; of several, the first that trains. */
function read(parser: PythonParser, { files, command }: AnalysisRequest): Read {
  const chosen = command === undefined ? findEntry(files) : undefined
  const line = command ?? `python ${chosen?.entry ?? ''}`
  const launches = command === undefined && chosen?.entry === undefined ? [] : readCommands(line, files)
  const [first, ...others] = launches.slice(0, PROGRAMS_MAX)
  if (first === undefined) {
    const project = new Project(files, parser)
    const message =
      command === undefined
        ? 'no Python program was found'
        : `no Python program of the project is started by: ${command}`
    project.obstacle(command ?? '.', 1, message)
    return {
      analysis: report(project, { launch: undefined, kind: 'unreadable', findings: nothingFound(message) }),
    }
  }
  let result = readLaunch(parser, { files, command: line }, first)
  for (const launch of others) {
    if (result.analysis.kind === 'training') break
    const other = readLaunch(parser, { files, command: line }, launch)
    if (other.analysis.kind === 'training') result = other
  }
  if (chosen !== undefined && chosen.others.length > 0)
    result.analysis.obstacles.unshift({
      file: first.entry,
      line: 1,
      message: `was chosen among several programs (${chosen.others.join(', ')}): name one to choose another`,
    })
  return result
}

function readLaunch(
  parser: PythonParser,
  { files, command }: { files: ProjectFiles; command: string },
  launch: Launch,
): Read {
  const project = new Project(files, parser, launch.folder)
  const run = followed(project, launch)
  const entry = project.source(launch.entry)
  if (entry === undefined) {
    const known = project.obstacles.find(({ file }) => file === launch.entry)
    if (known === undefined) project.obstacle(launch.entry, 1, 'was not found')
    const findings = nothingFound(`${launch.entry} ${known?.message ?? 'was not found'}`)
    return { analysis: report(project, { launch, kind: 'unreadable', findings }) }
  }
  if (run.isCut)
    project.obstacle(launch.entry, 1, 'is larger than this analysis follows; the rest was not read')
  const again = (words: string): Facts | undefined => {
    const changed = readCommands(`${command} ${words}`, files).find(({ entry }) => entry === launch.entry)
    if (changed === undefined || changed.args.length === launch.args.length) return undefined
    return gatherFacts(followed(project, changed), changed, () => undefined)
  }
  const facts = gatherFacts(run, launch, again)
  return { analysis: judged(project, { launch, facts }), facts }
}

function followed(project: Project, { args, entry, launcher, processes }: Launch): Interpreter {
  const run = new Interpreter({ project, args, entry, isLaunched: launcher !== 'python', processes }, READING)
  run.run()
  return run
}

function judged(project: Project, { launch, facts }: { launch: Launch; facts: Facts }): Analysis {
  const entry = project.source(launch.entry)!
  const python2 = project.sources.find(({ python2Line }) => python2Line !== undefined)
  if (python2 !== undefined)
    return report(project, {
      launch,
      kind: 'unreadable',
      findings: nothingFound('the program is written for Python 2'),
    })
  const isBroken = entry.brokenLines.length > 0
  if (facts.training.length === 0) {
    const unread = isBroken ? 'the program has a syntax error' : unreadPart(facts)
    const message = unread ?? 'the program trains no model with a known library'
    const findings = { ...nothingFound(message), framework: findFramework(facts), cli: findCli(facts) }
    return report(project, { launch, kind: unread === undefined ? 'not-training' : 'unreadable', findings })
  }
  const settings = findSettings(facts)
  const data = findData(facts)
  const models = modelsOf(facts)
  const devices = findDevices(facts, { ...settings, data }, models)
  const findings: Findings = {
    framework: findFramework(facts),
    cli: findCli(facts),
    ...findCheckpoints(facts),
    ...devices,
    ...settings,
    data,
    ...findModel(facts),
    memory: findMemory(facts, { ...devices, ...settings }, models),
    runTime: findRunTime(facts, { ...devices, ...settings, data }, models),
    workFamily: findWorkFamily(facts, { ...devices, ...settings }, models),
  }
  const isPartial =
    facts.run.isCut ||
    facts.run.lacksConfiguration ||
    project.sources.some(({ brokenLines }) => brokenLines.length > 0)
  const knowsCrucible = [...facts.run.variables].some((name) => CRUCIBLE_VARIABLES.has(name))
  return {
    ...report(project, { launch, kind: 'training', findings: isPartial ? lessCertain(findings) : findings }),
    knowsCrucible,
  }
}

/** Why a program may train although no call is known to; `undefined` if everything was read. */
function unreadPart({ run, events }: Facts): string | undefined {
  if (run.isCut) return 'the program is larger than this analysis follows'
  const called = events.filter(isCalled)
  for (const [name, { file, line }] of run.unresolved) {
    const isUsed = called.some((event) => mayTrain(event) && event.name.startsWith(`${name}.`))
    if (isUsed) return `${name} (${file}:${line}) is neither in the project nor a known library`
  }
  const [obstacle] = run.project.obstacles
  if (obstacle !== undefined) return `${obstacle.file}:${obstacle.line} ${obstacle.message}`
  const open = called.find(
    (event) =>
      (event.name.startsWith('?') && TRAINING_WORDS.has(event.method)) ||
      (isUnread(event) && getsOptimizer(event)),
  )
  return open === undefined ? undefined : `what ${firstLine(open.node.text)} does is unknown`
}

/** Whether a call is of an object that is not known, such as an instance of a class outside the project. */
const isUnread = ({ name }: CallEvent): boolean => name.startsWith('?') || name.endsWith('()()')

const getsOptimizer = ({ positional, named }: CallEvent): boolean =>
  [...positional, ...named.values()].some(
    (value) =>
      value.kind === 'made' && value.call.name.includes('.optim.') && !value.call.name.includes('()'),
  )

/** Whether a call of a module that was not read may train: a function of it, rather than a class or a method such as `eval`. */
const mayTrain = ({ name, method }: CallEvent): boolean =>
  name.includes('()') ? TRAINING_WORDS.has(method) : method.charAt(0) === method.charAt(0).toLowerCase()

/** Methods that may train, of objects that are unknown. */
const TRAINING_WORDS = new Set([
  'run',
  'main',
  'train',
  'fit',
  'fit_generator',
  'learn',
  'train_epoch',
  'train_one_epoch',
  'train_model',
  'finetune',
])

const CRUCIBLE_VARIABLES = new Set(['CRUCIBLE_CHECKPOINT_DIR', 'CRUCIBLE_RESUME_FROM'])

/** Lowers the confidence, because unread parts might contradict the findings. */
function lessCertain(findings: Findings): Findings {
  const entries = Object.entries(findings).map(([name, finding]) => {
    const missing = [...finding.missing, 'part of the program could not be read']
    return [name, { ...finding, confidence: Math.min(finding.confidence, POSSIBLE), missing }]
  })
  return Object.fromEntries(entries) as Findings
}

function report(
  project: Project,
  { launch, kind, findings }: { launch: Launch | undefined; kind: Analysis['kind']; findings: Findings },
): Analysis {
  return {
    version: ANALYSIS_VERSION,
    entry: launch?.entry ?? null,
    args: launch?.args ?? [],
    launcher: launch?.launcher ?? 'python',
    files: project.sources.map(({ path }) => path),
    linesRead: project.sources.reduce((sum, { text }) => sum + text.split('\n').length, 0),
    kind,
    knowsCrucible: false,
    obstacles: project.obstacles,
    findings,
  }
}
