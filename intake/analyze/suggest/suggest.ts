/**
 * The change that makes a program save and resume, as a diff; or why no change is certain to be right. Nothing is run, and the
 * edits are made at nodes of the syntax tree.
 */
import type { Facts } from '../facts'
import type { PythonParser, SourceFile } from '../syntax'
import type { Analysis } from '../report'
import { carriedState } from './carried'
import { checkedObjects } from './checks'
import { edited, unifiedDiff, type Edit } from './diff'
import { trainingLoop } from './loop'
import { Refusal, refuse, type Reason } from './refusal'
import { functionsInLoop } from './region'
import { writeLoop } from './torch'
import { Writing } from './writing'

export type { Reason } from './refusal'

export interface Suggestion {
  /** `diff`: a change makes it resume. `resumes`: it does already. `refused`: no change is certain to be right. */
  outcome: 'diff' | 'resumes' | 'refused'
  /** For `git apply` or `patch -p1` in the analyzed folder. */
  diff: string | null
  /** When the changed program saves. */
  saves: string | null
  /** Why there is no diff. */
  reasons: Reason[]
}

/** Answers with a change for programs with a loop of their own in PyTorch. */
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
    refuse(top, { line: 1 }, 'reads the variables of Crucible already, but does not resume completely')
  const [cannot] = findings.cannotRun.value ?? []
  if (cannot === 'tpu' || cannot === 'ipu')
    refuse(top, { line: 1 }, 'is written for accelerators that no backend has')
  const [other] = facts.training.filter(({ engine }) => engine !== 'own')
  if (other !== undefined)
    refuse(
      other.event.file.path,
      other.event.node,
      'trains with a library whose loop this analysis does not change yet',
    )
  return changeOfLoop(parser, facts)
}

function changeOfLoop(parser: PythonParser, facts: Facts): { diff: string; saves: string } {
  const training = trainingLoop(facts)
  const region = functionsInLoop(facts.run, training)
  const held = checkedObjects({ facts, training, region })
  if (!held.some(({ role }) => role === 'optimizer'))
    refuse(
      training.source.path,
      training.loop,
      'begins a loop without an optimizer of PyTorch that has a name there',
    )
  const isNumpy = [...facts.run.imports.keys()].some((name) => WITH_NUMPY.has(name.split('.')[0]!))
  const writing = new Writing(training.source)
  const { variables, isCounterRead } = carriedState(facts, { training, region })
  checkPlaces(writing, training.loop.node, training.source)
  writeLoop(writing, { training, held, variables, isCounterRead, isNumpy })
  return {
    diff: diffOf(parser, training.source, writing.finish()),
    saves: training.isEpoch
      ? `after each round of the loop at ${training.source.path}:${training.loop.line}`
      : 'every 300 s, or as CRUCIBLE_CHECKPOINT_EVERY_SECONDS says',
  }
}

/** Libraries that bring NumPy along and may draw its random numbers. */
const WITH_NUMPY = new Set([
  ...[
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
  ],
  ...['transformers', 'gymnasium', 'gym', 'librosa', 'monai', 'matplotlib'],
])

function checkPlaces(
  writing: Writing,
  node: Facts['training'][number]['event']['node'],
  source: SourceFile,
): void {
  if (writing.indentationOf(node) === undefined)
    refuse(source.path, node, 'begins a loop behind another statement of its line')
}

/** The diff, if what it makes is still Python. */
function diffOf(parser: PythonParser, source: SourceFile, edits: readonly Edit[]): string {
  const changed = parser.parse(source.path, edited(source.text, edits))
  const [broken] = changed.brokenLines
  if (broken !== undefined)
    refuse(source.path, { line: 1 }, `would not be Python any more at line ${broken} of the changed file`)
  return unifiedDiff(source.path, source.text, edits)
}
