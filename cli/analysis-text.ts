/** An analysis in plain English. */
import type { Analysis, FindingName, Suggestion } from '../packages/analyzer/src/analyze'
import { isOnlyLeast } from '../packages/analyzer/src/report'
import type { Output } from './kit/output'
import { count, NOTHING, plural } from './kit/words'

type Findings = Analysis['findings']

interface Row {
  title: string
  name: FindingName
  words: (findings: Findings) => string
}

const GPU_USE = {
  hard: 'required: the program stops without one',
  practical: 'needed in practice: a CPU would take days',
  optional: 'used if there is one',
  none: 'not used',
} as const

const MULTI_GPU = { yes: 'required', optional: 'supported', no: 'not used' } as const

const RESUMES = {
  yes: 'yes: model, optimizer and position',
  partial: 'in part',
  no: 'no',
} as const

const ROWS: readonly Row[] = [
  { title: 'framework', name: 'framework', words: ({ framework }) => listed(framework.value) },
  { title: 'options', name: 'cli', words: ({ cli }) => optionsInWords(cli.value) },
  { title: 'saves', name: 'saveKind', words: savesInWords },
  { title: 'can resume', name: 'canResume', words: resumeInWords },
  {
    title: 'GPU',
    name: 'gpuUse',
    words: ({ gpuUse }) => (gpuUse.value === null ? NOTHING : GPU_USE[gpuUse.value]),
  },
  { title: 'several GPUs', name: 'multiGpu', words: severalInWords },
  { title: 'precision', name: 'precision', words: ({ precision }) => precision.value ?? NOTHING },
  { title: 'batch size', name: 'batchSize', words: ({ batchSize }) => counted(batchSize.value) },
  { title: 'epochs', name: 'epochs', words: ({ epochs }) => counted(epochs.value) },
  { title: 'steps', name: 'steps', words: ({ steps }) => counted(steps.value) },
  {
    title: 'recomputes activations',
    name: 'gradientCheckpointing',
    words: ({ gradientCheckpointing }) => yesNo(gradientCheckpointing.value),
  },
  { title: 'data', name: 'data', words: ({ data }) => listed(data.value) },
  { title: 'model', name: 'model', words: ({ model }) => listed(model.value) },
  { title: 'parameters', name: 'modelParams', words: ({ modelParams }) => counted(modelParams.value) },
  { title: 'memory', name: 'memory', words: memoryInWords },
  { title: 'family of work', name: 'workFamily', words: ({ workFamily }) => workFamily.value ?? NOTHING },
  { title: 'run time', name: 'runTime', words: ({ runTime }) => runTimeInWords(runTime.value) },
]

/** Prints the findings with their confidence and places. */
export function showAnalysis(out: Output, analysis: Analysis): void {
  const { entry, files, linesRead, kind, findings } = analysis
  const size = `${plural(files.length, 'file')}, ${count(linesRead)} lines`
  out.line(entry === null ? 'No program found.' : `${out.paint.bold(entry)} (${size})`)
  if (kind === 'not-training') out.line('This program trains no model with a known library.')
  if (kind === 'unreadable') out.line(unreadableInWords(findings))
  const rows = ROWS.filter(({ name }) => findings[name].value !== null).map(({ title, name, words }) => [
    title,
    words(findings),
    `${Math.round(findings[name].confidence * 100)} %`,
    placeOf(findings[name].evidence[0]),
  ])
  if (rows.length > 0) {
    out.line()
    out.table(['FINDING', 'VALUE', 'SURE', 'WHERE'], rows, { right: ['SURE'], flexible: ['VALUE', 'WHERE'] })
  }
  showObstacles(out, analysis)
  if (kind === 'training') showUnknown(out, findings)
}

function unreadableInWords({ canResume }: Findings): string {
  const [reason] = canResume.missing
  return `Could not tell what this program does${reason === undefined ? '' : `: ${reason}`}.`
}

const placeOf = (place: { file: string; line: number } | undefined): string =>
  place === undefined ? NOTHING : `${place.file}:${place.line}`

const listed = (names: readonly string[] | null): string =>
  names === null ? NOTHING : names.length === 0 ? 'none known' : names.join(', ')

const counted = (value: number | null): string => (value === null ? NOTHING : count(value))
const yesNo = (value: boolean | null): string => (value === null ? NOTHING : value ? 'yes' : 'no')

function optionsInWords(cli: Findings['cli']['value']): string {
  if (cli === null) return NOTHING
  if (cli.options.length === 0) return cli.style === 'none' ? 'none' : cli.style
  return `${cli.style}: ${cli.options.map(({ name }) => name).join(' ')}`
}

function savesInWords({ saveKind, saveEvery }: Findings): string {
  switch (saveKind.value) {
    case 'periodic':
      return saveEvery.value === null
        ? 'while it trains'
        : `every ${saveEvery.value.startsWith('1 ') ? saveEvery.value.slice(2) : saveEvery.value}`
    case 'flag':
      return `only with ${saveKind.how?.option ?? 'an option'}`
    case 'final_only':
      return 'only at the end'
    case 'none':
      return 'never'
    case null:
      return NOTHING
  }
}

function resumeInWords({ canResume: { value, how, missing } }: Findings): string {
  if (value === null) return NOTHING
  const lacking = value !== 'yes' && missing.length > 0 ? `: ${missing.join(', ')}` : ''
  if (value === 'no') return `${RESUMES.no}${lacking}`
  const option = how?.option === null || how === null ? '' : `, with ${how.option}`
  return `${RESUMES[value]}${lacking}${option}`
}

/** A model below one MiB needs no figures. */
const LEAST_GIB = 1 / 1024

/** `at least 18 GiB a GPU` of an unsure range; `18 to 25 GiB a GPU: weights 6.4, gradients 3.2, optimizer 6.4, activations 1.5`; MiB for small models. */
function memoryInWords({ memory, gpuUse }: Findings): string {
  const { value } = memory
  if (value === null) return NOTHING
  if (value.highGiB < LEAST_GIB) return 'less than 1 MiB'
  const [unit, perGiB] = value.highGiB < 1 ? ['MiB', 1024] : ['GiB', 1]
  const digits = (gib: number): string => String(Number((gib * perGiB).toPrecision(2)))
  const { weights, gradients, optimizer, activations } = value.components
  const shares = Object.entries({ weights, gradients, optimizer, activations }).map(
    ([name, { highGiB }]) => `${name} ${digits(highGiB)}`,
  )
  const where = gpuUse.value === 'none' ? '' : ' a GPU'
  if (isOnlyLeast(memory)) return `at least ${digits(value.lowGiB)} ${unit}${where}`
  return `${digits(value.lowGiB)} to ${digits(value.highGiB)} ${unit}${where}: ${shares.join(', ')}`
}

function runTimeInWords(value: Findings['runTime']['value']): string {
  if (value === null) return NOTHING
  const { class: kind, lowHours, highHours, accelerator, gpus } = value
  return `${kind}: ${lowHours} to ${highHours} h on ${gpus} ${accelerator}`
}

function severalInWords({ multiGpu, multiGpuStyle }: Findings): string {
  if (multiGpu.value === null) return NOTHING
  const styles = multiGpuStyle.value ?? []
  const words = MULTI_GPU[multiGpu.value]
  return styles.length === 0 || multiGpu.value === 'no' ? words : `${words} (${styles.join(', ')})`
}

const REASONS = {
  tpu: 'It is written for TPUs, which no backend has.',
  ipu: 'It is written for IPUs, which no backend has.',
  'never-ending': 'Its training loop has no end: set a deadline or a budget.',
  interactive: 'It waits for input from a keyboard, which a job does not have.',
} as const

function showObstacles(out: Output, { obstacles, findings }: Analysis): void {
  const reasons = (findings.cannotRun.value ?? []).map((reason) => REASONS[reason])
  const lines = [...reasons, ...obstacles.map(({ file, line, message }) => `${file}:${line} ${message}.`)]
  if (lines.length === 0) return
  out.line()
  for (const line of lines) out.line(out.paint.yellow(line))
}

function showUnknown(out: Output, findings: Findings): void {
  const unknown = ROWS.filter(({ name }) => findings[name].value === null)
  const isCounted = findings.epochs.value !== null || findings.steps.value !== null
  const shown = unknown.filter(({ name }) => !(isCounted && (name === 'epochs' || name === 'steps')))
  if (shown.length === 0) return
  out.line()
  for (const { title, name } of shown) {
    const [reason] = findings[name].missing
    out.line(`Not known: ${title}${reason === undefined ? '' : ` (${reason})`}.`)
  }
}

/** Prints a diff to stdout unchanged, for a pipe to `git apply`; all other output goes to stderr. */
export function showSuggestion(out: Output, analysis: Analysis, { diff, saves, reasons }: Suggestion): void {
  if (diff !== null) {
    if (out.isTerminal) for (const line of diff.trimEnd().split('\n')) out.line(line.replace('\r', ''))
    else out.raw(diff.slice(0, -1))
    out.note(`The changed program saves ${saves}. Check it with crucible rehearse.`)
    return
  }
  const { how, evidence } = analysis.findings.canResume
  const [reason] = reasons
  if (reason === undefined) {
    const option = how?.option ?? null
    const words = option === null ? 'without an option' : `with ${option}`
    out.note(`${analysis.entry} resumes already, ${words} (${placeOf(evidence[0])}). No change is needed.`)
  } else
    out.note(
      `No change suggested, because none is certainly right: ${reason.file}:${reason.line} ${reason.message}.`,
    )
}
