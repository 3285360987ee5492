/**
 * Reads a training script without running it, and reports what a job needs to know of it, each finding with its place in the source and
 * with how sure it is. Texts and the grammar are arguments: nothing is read, started or guessed from names of files alone.
 */
import { runBlock } from './statements'
import { callFunction } from './definitions'
import { dispatch } from './calls'
import { evaluate } from './expressions'
import { gatherFacts, type Facts } from './facts'
import { findCheckpoints } from './findings/checkpoints'
import { findDevices } from './findings/devices'
import { findCli, findFramework } from './findings/framework'
import { findMemory } from './findings/memory'
import { findData, findModel } from './findings/models'
import { findRunTime } from './findings/run-time'
import { findSettings } from './findings/settings'
import { findWorkFamily } from './findings/work-family'
import { modelsOf } from './memory/models'
import { Interpreter, type Reading } from './interpreter'
import { findEntry, readCommand, type Launch } from './launch'
import { Project, type ProjectFiles } from './project'
import { ANALYSIS_VERSION, notKnown, POSSIBLE, type Analysis, type Finding, type Findings } from './report'
import { suggestResume, type Suggestion } from './suggest/suggest'
import type { PythonParser } from './syntax'

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

/** Facts are missing where no program was found. */
function read(
  parser: PythonParser,
  { files, command }: AnalysisRequest,
): { analysis: Analysis; facts?: Facts } {
  const project = new Project(files, parser)
  const launch = command === undefined ? launchOfFolder(project, files) : readCommand(command, files)
  if (launch === undefined) {
    const message =
      command === undefined
        ? 'no Python program was found'
        : `no Python program of the project is started by: ${command}`
    project.obstacle(command ?? '.', 1, message)
    return {
      analysis: report(project, { launch: undefined, kind: 'unreadable', findings: nothingFound(message) }),
    }
  }
  const run = new Interpreter({ project, args: launch.args, entry: launch.entry }, READING)
  run.run()
  const entry = project.source(launch.entry)
  if (entry === undefined) {
    project.obstacle(launch.entry, 1, 'was not found')
    const findings = nothingFound(`${launch.entry} was not found`)
    return { analysis: report(project, { launch, kind: 'unreadable', findings }) }
  }
  if (run.isCut)
    project.obstacle(launch.entry, 1, 'is larger than this analysis follows; the rest was not read')
  const facts = gatherFacts(run, launch)
  return { analysis: judged(project, { launch, facts }), facts }
}

function launchOfFolder(project: Project, files: ProjectFiles): Launch | undefined {
  const { entry, others } = findEntry(files)
  if (entry === undefined) return undefined
  if (others.length > 0)
    project.obstacle(
      entry,
      1,
      `was chosen among several programs (${others.join(', ')}): name one to choose another`,
    )
  return readCommand(`python ${entry}`, files)
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
    const unread = isBroken
      ? 'the program has a syntax error'
      : facts.run.isCut
        ? 'the program is larger than this analysis follows'
        : undefined
    const message = unread ?? 'the program trains no model with a known library'
    const findings = { ...nothingFound(message), framework: findFramework(facts), cli: findCli(facts) }
    return report(project, { launch, kind: unread === undefined ? 'not-training' : 'unreadable', findings })
  }
  const devices = findDevices(facts)
  const settings = findSettings(facts)
  const data = findData(facts)
  const models = modelsOf(facts)
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
  const isPartial = facts.run.isCut || project.sources.some(({ brokenLines }) => brokenLines.length > 0)
  const knowsCrucible = [...facts.run.variables].some((name) => CRUCIBLE_VARIABLES.has(name))
  return {
    ...report(project, { launch, kind: 'training', findings: isPartial ? lessCertain(findings) : findings }),
    knowsCrucible,
  }
}

const CRUCIBLE_VARIABLES = new Set(['CRUCIBLE_CHECKPOINT_DIR', 'CRUCIBLE_RESUME_FROM'])

/** Lowers the confidence, because unread parts might contradict the findings. */
function lessCertain(findings: Findings): Findings {
  const entries = Object.entries(findings).map(([name, finding]) => {
    const missing = [...finding.missing, 'part of the program could not be read']
    return [name, { ...finding, confidence: Math.min(finding.confidence, POSSIBLE), missing }]
  })
  return Object.fromEntries(entries) as Findings
}

function nothingFound(reason: string): Findings {
  const nothing = (): Finding<never> => notKnown<never>(reason)
  return {
    framework: nothing(),
    cli: nothing(),
    saveKind: nothing(),
    savesCheckpoints: nothing(),
    saveEvery: nothing(),
    canResume: nothing(),
    checkpointDirectory: nothing(),
    resumeOption: nothing(),
    gpuUse: nothing(),
    needsGpu: nothing(),
    multiGpu: nothing(),
    multiGpuStyle: nothing(),
    gpuCount: nothing(),
    precision: nothing(),
    batchSize: nothing(),
    epochs: nothing(),
    steps: nothing(),
    gradientCheckpointing: nothing(),
    cannotRun: nothing(),
    data: nothing(),
    model: nothing(),
    modelParams: nothing(),
    memory: nothing(),
    runTime: nothing(),
    workFamily: nothing(),
  }
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
