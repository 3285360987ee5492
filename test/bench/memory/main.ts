/** `npm run bench:memory -- --help` (docs/design/benchmarks.md). */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parser } from '../../analyze/corpus'
import { readOptions } from '../../support/options'
import { isMissed, lineOf, type Measure } from '../measure'
import {
  CASE_SETS,
  cardFor,
  cases,
  isTooLarge,
  judge,
  measured,
  MEASURED_FOLDERS,
  ratioOf,
  RATIO_MAX,
  scoreOf,
  scriptsOf,
  usesJax,
  whyTooLarge,
  type Judged,
  type Measured,
} from './cases'

async function main(): Promise<void> {
  const values = readOptions({
    name: 'bench:memory',
    about:
      'Compares estimates of GPU memory with measured models and with statements of authors (docs/design/benchmarks.md).',
    options: {
      measure: {
        default: false,
        means:
          'measure the small models again, with the PyTorch of PYTHON and the JAX, Flax and Keras of JAX_PYTHON, or of python3',
      },
    },
  })
  if (values === undefined) return
  if (values.measure) {
    measureAgain()
    return
  }
  process.stdout.write(
    `small models measured ${measured.measuredAt} with PyTorch ${measured.versions['torch']} and JAX ${measured.versions['jax']}\n`,
  )
  const python = await parser()
  const judged = cases().map((each) => judge(python, each))
  const sets = CASE_SETS.map((name) => ({
    set: name === '' ? '' : `${name}: `,
    of: judged.filter(({ set }) => set === name),
  }))
  for (const { set, of } of sets) for (const each of of) process.stdout.write(`${set}${inWords(each)}\n`)
  for (const each of judged.filter((one) => !one.isMeasured && isTooLarge(one)))
    process.stdout.write(`too large: ${each.name}: ${cardFor(each.highGiB)} GB; ${whyTooLarge(each)}\n`)
  const measures = sets.flatMap(({ set, of }) => measuresOf(of, set))
  for (const measure of measures) process.stdout.write(`${lineOf(measure)}\n`)
  process.exitCode = measures.some(isMissed) ? 1 : 0
}

function inWords(each: Judged): string {
  const { name, lowGiB, highGiB, truth, holds, finding } = each
  const gib = (value: number): string => value.toPrecision(3)
  const known =
    truth.aboveGiB === truth.atMostGiB
      ? gib(truth.aboveGiB)
      : `${gib(truth.aboveGiB)} to ${gib(truth.atMostGiB)}`
  return `${holds ? 'held  ' : 'MISSED'} ${name}: ${gib(lowGiB)} to ${gib(highGiB)} GiB (x${ratioOf(each).toFixed(2)}, ${finding.confidence}), true ${known}`
}

function measuresOf(judged: readonly Judged[], set: string): Measure[] {
  const { held, narrow, ratio, tooSmall, tooLarge, chosen } = scoreOf(judged)
  const bench = 'memory'
  const percent = (part: number): number => Math.round(part * 1_000) / 10
  return [
    {
      ...{ bench, name: `${set}ranges that hold the truth`, value: percent(held), unit: '%' },
      ...{ goal: { is: 'at least', value: 90 }, remark: `${judged.length} scripts` },
    },
    {
      ...{
        bench,
        name: `${set}ranges with an upper end of at most ${RATIO_MAX} times the lower`,
        value: percent(narrow),
        unit: '%',
      },
      goal: { is: 'at least', value: 90 },
    },
    { bench, name: `${set}upper by lower end, median`, value: Math.round(ratio * 100) / 100, unit: 'x' },
    { bench, name: `${set}GPUs chosen too small`, value: tooSmall, unit: `of ${chosen}` },
    { bench, name: `${set}GPUs chosen too large`, value: tooLarge, unit: `of ${chosen}` },
  ]
}

/** Runs the small models; without one of the libraries, says so and keeps the figures that are there. */
function measureAgain(): void {
  const scripts = MEASURED_FOLDERS.flatMap((folder) =>
    scriptsOf(folder).map((name) => join(__dirname, folder, name)),
  )
  const { PYTHON = 'python3', JAX_PYTHON = 'python3' } = process.env
  const ofJax = new Set(scripts.filter(usesJax))
  const torch = figuresOf(
    PYTHON,
    'measure.py',
    scripts.filter((script) => !ofJax.has(script)),
  )
  const jax = figuresOf(JAX_PYTHON, 'measure_jax.py', [...ofJax])
  const known = [measured, ...[torch, jax].filter((each) => each !== undefined)]
  const all = known.reduce((merged, each) => ({
    ...each,
    versions: { ...merged.versions, ...each.versions },
    bytes: { ...merged.bytes, ...each.bytes },
  }))
  writeFileSync(join(__dirname, 'measured.json'), `${JSON.stringify(all, null, 2)}\n`)
  process.exitCode = torch === undefined || jax === undefined ? 1 : 0
}

function figuresOf(python: string, program: string, scripts: string[]): Measured | undefined {
  const { stdout, stderr, status } = spawnSync(python, [join(__dirname, program), ...scripts], {
    encoding: 'utf8',
  })
  if (status === 0) return JSON.parse(stdout) as Measured
  process.stderr.write(stderr)
  return undefined
}

void main()
