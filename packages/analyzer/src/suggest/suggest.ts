/**
 * The change that makes a program save and resume, as a diff; or why no change is certain to be right. Nothing is run, and the
 * edits are made at nodes of the syntax tree.
 */
import { HOOK } from '../calls'
import type { Engine, Facts } from '../facts'
import type { PythonParser, SourceFile } from '../syntax'
import type { Analysis } from '../report'
import { writeBoosting } from './boosting'
import { carriedState } from './carried'
import { checkedObjects } from './checks'
import { edited, unifiedDiff, type Edit } from './diff'
import { writeKeras } from './keras'
import { writeLightning } from './lightning'
import { trainingLoop } from './loop'
import { ownSave, writeRest } from './own-save'
import { Refusal, refuse, type Reason } from './refusal'
import { functionsInLoop } from './region'
import { writeLoop } from './saving'
import { checkSeeds } from './random'
import { writeTrainer } from './trainer'
import { Writing } from './writing'

export interface Suggestion {
  /** `diff`: a change makes it resume. `resumes`: it does already. `refused`: no change is certain to be right. */
  outcome: 'diff' | 'resumes' | 'refused'
  /** The change as a patch for `git apply` or `patch -p1` in the analyzed folder. */
  diff: string | null
  /** Says when the changed program saves. */
  saves: string | null
  /** Reason for the missing diff. */
  reasons: Reason[]
}

/** Answers with a change for programs with one loop of their own, or one call that trains. */
export function suggestResume(
  parser: PythonParser,
  analysis: Analysis,
  facts: Facts | undefined,
): Suggestion {
  if (analysis.findings.canResume.value === 'yes') return { ...NOTHING, outcome: 'resumes' }
  try {
    return { ...NOTHING, outcome: 'diff', ...change(parser, analysis, facts) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...NOTHING, outcome: 'refused', reasons: [error.reason] }
  }
}

const NOTHING = { diff: null, saves: null, reasons: [] }

function change(
  parser: PythonParser,
  { entry, kind, obstacles, findings, knowsCrucible }: Analysis,
  facts: Facts | undefined,
): { diff: string; saves: string } {
  const [obstacle] = obstacles.filter(({ message }) => !message.startsWith('was chosen among'))
  if (obstacle !== undefined) throw new Refusal(obstacle)
  const top = entry ?? '.'
  if (facts === undefined || kind !== 'training')
    refuse(top, { line: 1 }, 'trains nothing with a library that this analysis knows')
  if (knowsCrucible)
    refuse(top, { line: 1 }, 'already reads the variables of Crucible, so the missing part is unknown')
  const [cannot] = findings.cannotRun.value ?? []
  if (cannot === 'tpu' || cannot === 'ipu')
    refuse(top, { line: 1 }, 'is written for accelerators that no backend has')
  const main = facts.training.filter(({ event }) => !event.within.includes(HOOK))
  const engines = new Set(main.map(({ engine }) => engine))
  const [training] = facts.training
  if (engines.size === 1 && engines.has('hugging-face')) return changeOfTrainer(parser, facts)
  const write = engines.size === 1 ? WRITERS[main[0]!.engine] : undefined
  if (write !== undefined) return changeOfLibrary(parser, { ...facts, training: main }, write)
  const other = facts.training.find(({ engine, event }) => engine !== 'own' && event.method !== 'partial_fit')
  if (other !== undefined)
    refuse(other.event.file.path, other.event.node, UNCHANGED[other.engine as Exclude<Engine, 'own'>])
  if (!findings.framework.value?.some((name) => FORMATS.has(name)))
    refuse(
      training!.event.file.path,
      training!.event.node,
      'trains with a library whose state this analysis does not save',
    )
  return changeOfLoop(parser, facts, findings.checkpointDirectory.value !== null)
}

/** How the loops of libraries are saved, as the report names them. */
const FORMATS = new Set(['pytorch', 'jax', 'sklearn'])

const UNCHANGED: Readonly<Record<Exclude<Engine, 'own'>, string>> = {
  'hugging-face': 'trains with a Trainer next to another loop',
  lightning: 'trains with Lightning next to another loop',
  keras: 'trains with fit of Keras next to another loop',
  megatron: 'trains with the loop of Megatron, which saves and resumes with --save and --load',
  estimator: 'trains in one call of a library next to another loop',
}

/** A Trainer of Hugging Face saves and restores on its own; it must be told where. */
function changeOfTrainer(parser: PythonParser, facts: Facts): { diff: string; saves: string } {
  checkSeeds(facts.events)
  const { writings, saves } = writeTrainer(facts)
  const diffs = writings.map((writing) => diffOf(parser, writing.source, writing.finish()))
  return { diff: diffs.join(''), saves }
}

/** Writes the change of a program whose loop a library runs; answers when the changed program saves. */
type Writer = (
  program: { facts: Facts; isNumpy: boolean },
  writingOf: (source: SourceFile) => Writing,
) => string

const WRITERS: Partial<Record<Engine, Writer>> = {
  lightning: writeLightning,
  keras: writeKeras,
  estimator: writeBoosting,
}

function changeOfLibrary(parser: PythonParser, facts: Facts, write: Writer): { diff: string; saves: string } {
  const [, another] = facts.training
  if (another !== undefined)
    refuse(
      another.event.file.path,
      another.event.node,
      'trains a second time; only a program that trains once can be changed safely',
    )
  const writings = new Map<string, Writing>()
  const writingOf = (source: SourceFile): Writing => {
    if (source.path.endsWith('.ipynb'))
      refuse(source.path, { line: 1 }, 'is a notebook, which a diff cannot change')
    const writing = writings.get(source.path) ?? new Writing(source)
    writings.set(source.path, writing)
    return writing
  }
  const saves = write({ facts, isNumpy: drawsOfNumpy(facts) }, writingOf)
  const diffs = [...writings.values()].map((writing) => diffOf(parser, writing.source, writing.finish()))
  return { diff: diffs.join(''), saves }
}

/** `hasFolder`: whether the program saves into a folder, which Crucible can keep. */
function changeOfLoop(
  parser: PythonParser,
  facts: Facts,
  hasFolder: boolean,
): { diff: string; saves: string } {
  const training = trainingLoop(facts)
  const region = functionsInLoop(facts.run, training)
  const held = checkedObjects({ facts, training, region })
  const isTorch = [...facts.run.imports.keys()].some((name) => name.split('.')[0] === 'torch')
  if (isTorch && !held.some(({ role }) => role === 'optimizer'))
    refuse(
      training.source.path,
      training.loop,
      'begins a loop without an optimizer of PyTorch that has a name there',
    )
  const isNumpy = drawsOfNumpy(facts)
  const writing = new Writing(training.source)
  const { variables, isCounterRead } = carriedState(facts, { training, region })
  checkPlaces(writing, training.loop.node, training.source)
  if (held.length + variables.length === 0)
    refuse(training.source.path, training.loop, 'begins a loop that changes nothing which has a name there')
  const format = isTorch ? 'torch' : 'pickle'
  const state = { training, held, variables, isCounterRead, isNumpy, format } as const
  const own = hasFolder ? ownSave(facts, state) : undefined
  if (own !== undefined) {
    writeRest(writing, state, own)
    const saves = `whenever its own save at ${training.source.path}:${own.event.node.line} runs`
    return { diff: diffOf(parser, training.source, writing.finish()), saves }
  }
  writeLoop(writing, state)
  return {
    diff: diffOf(parser, training.source, writing.finish()),
    saves: training.isEpoch
      ? `after each round of the loop at ${training.source.path}:${training.loop.line}`
      : 'every 300 s (CRUCIBLE_CHECKPOINT_EVERY_SECONDS changes this)',
  }
}

/** Libraries that bring NumPy along and may draw its random numbers. */
const WITH_NUMPY = new Set([
  'numpy',
  'scipy',
  'pandas',
  'sklearn',
  'torchvision',
  'albumentations',
  'imgaug',
  'cv2',
  'skimage',
  'datasets',
  'transformers',
  'gymnasium',
  'gym',
  'librosa',
  'monai',
  'matplotlib',
])

const drawsOfNumpy = ({ run }: Facts): boolean =>
  [...run.imports.keys()].some((name) => WITH_NUMPY.has(name.split('.')[0]!))

function checkPlaces(
  writing: Writing,
  node: Facts['training'][number]['event']['node'],
  source: SourceFile,
): void {
  if (writing.indentationOf(node) === undefined)
    refuse(source.path, node, 'begins a loop behind another statement of its line')
}

/** Returns the diff; refuses one whose result is not valid Python. */
function diffOf(parser: PythonParser, source: SourceFile, edits: readonly Edit[]): string {
  const [broken] = parser.parse(source.path, edited(source.text, edits))?.brokenLines ?? [1]
  if (broken !== undefined) refuse(source.path, { line: 1 }, `would have a syntax error at line ${broken}`)
  return unifiedDiff(source.path, source.text, edits)
}
