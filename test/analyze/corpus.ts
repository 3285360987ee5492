/** Scripts with labels, and how many fields of them an analysis gets right. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  analyze,
  loadPython,
  type Analysis,
  type FindingName,
  type ProjectFiles,
  type PythonParser,
} from '../../packages/analyzer/src/analyze'

const HERE = __dirname

/** What is true of a script, written before the rule that finds it. */
export interface Label {
  /** The command that starts it. */
  run: string
  /** True if there is nothing to find, `null` if the source is too damaged to say. */
  notTraining?: boolean | null
  /** Whether part of it cannot be followed, and the analysis must say so. */
  obstacle?: boolean
  /** The findings that change a job; `null` where no value is right. */
  checkpointDirectory: string | null
  resumeOption: string | null
  [field: string]: unknown
}

export interface Sample {
  name: string
  label: Label
  folder: string
}

export function samplesIn(folder: string): Sample[] {
  const root = join(HERE, folder)
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'label.json')))
    .map(({ name }) => ({
      name,
      folder: join(root, name),
      label: JSON.parse(readFileSync(join(root, name, 'label.json'), 'utf8')) as Label,
    }))
}

/** Reads a folder of the tests as a project. */
export function filesOf(folder: string): ProjectFiles {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  return {
    list: () => paths,
    read: (path) =>
      paths.includes(path) && path.includes('.') ? readFileSync(join(folder, path), 'utf8') : undefined,
  }
}

/** A project whose files are given here. */
export const project = (texts: Record<string, string>): ProjectFiles => ({
  read: (path) => texts[path],
  list: () => Object.keys(texts),
})

export function parser(): Promise<PythonParser> {
  const bytes = (name: string, file: string): Uint8Array =>
    readFileSync(join(dirname(require.resolve(`${name}/package.json`)), file))
  return loadPython({
    engine: readFileSync(require.resolve('web-tree-sitter/web-tree-sitter.wasm')),
    python: bytes('tree-sitter-python', 'tree-sitter-python.wasm'),
  })
}

export interface Judgement {
  sample: string
  field: string
  wanted: unknown
  told: unknown
  confidence: number
  isRight: boolean
}

/** Every labelled field of a sample with what the analysis says. */
export function judge(python: PythonParser, { name, folder, label }: Sample): Judgement[] {
  const analysis = analyze(python, { files: filesOf(folder), command: commandOf(label) })
  return Object.entries(label)
    .filter(([field]) => field !== 'run')
    .map(([field, wanted]) => {
      const { told, confidence } = answer(analysis, field)
      const isRight = JSON.stringify(sorted(told)) === JSON.stringify(sorted(wanted))
      return { sample: name, field, wanted, told, confidence, isRight }
    })
}

const commandOf = ({ run }: Label): string =>
  run.endsWith('.ipynb') ? `jupyter nbconvert --execute ${run}` : run

function answer(analysis: Analysis, field: string): { told: unknown; confidence: number } {
  if (field === 'notTraining') {
    const told = {
      training: false,
      'not-training': true,
      unreadable: analysis.obstacles.some(({ message }) => message.includes('Python 2')) ? true : null,
    }
    return {
      told: analysis.kind === 'training' && analysis.obstacles.length > 0 ? null : told[analysis.kind],
      confidence: 1,
    }
  }
  if (field === 'obstacle') return { told: analysis.obstacles.length > 0, confidence: 1 }
  const finding = analysis.findings[field as FindingName]
  if (field === 'cli')
    return { told: (finding.value as { style: string } | null)?.style, confidence: finding.confidence }
  return { told: finding.value, confidence: finding.confidence }
}

const sorted = (value: unknown): unknown => (Array.isArray(value) ? [...(value as unknown[])].sort() : value)

export interface Score {
  fields: number
  right: number
  wrong: Judgement[]
  falseResumes: Judgement[]
  /** Values that would be written into a job and are wrong; a missing value is not among them. */
  wrongRewrites: Judgement[]
  confident: { said: number; right: number }
}

/** Findings of at least this confidence are right in 95 of 100 cases. */
const CONFIDENT = 0.9
/** Findings that `plan` and `submit` write into a job. */
export const REWRITES = ['checkpointDirectory', 'resumeOption'] as const

export function score(judgements: readonly Judgement[]): Score {
  const confident = judgements.filter(({ confidence, told }) => confidence >= CONFIDENT && told !== null)
  return {
    fields: judgements.length,
    right: judgements.filter(({ isRight }) => isRight).length,
    wrong: judgements.filter(({ isRight }) => !isRight),
    falseResumes: judgements.filter(
      ({ field, told, wanted }) => field === 'canResume' && told === 'yes' && wanted !== 'yes',
    ),
    wrongRewrites: judgements.filter(
      ({ field, told, isRight }) => REWRITES.some((each) => each === field) && told !== null && !isRight,
    ),
    confident: { said: confident.length, right: confident.filter(({ isRight }) => isRight).length },
  }
}

export function inWords({ fields, right, wrong, confident }: Score): string {
  const percent = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(1)} %`
  return [
    `${right} of ${fields} fields right (${percent(right, fields)})`,
    `of those told with ${CONFIDENT} or more: ${confident.right} of ${confident.said} (${percent(confident.right, confident.said)})`,
    ...wrong.map(
      ({ sample, field, wanted, told, confidence }) =>
        `  ${sample}: ${field} is ${JSON.stringify(wanted)}, told ${JSON.stringify(told)} (${confidence})`,
    ),
  ].join('\n')
}
