/** A file store whose every operation is slow, or hangs, under the jobs of a deployment of real processes. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND_MS } from '../../core/time/time'
import { crucible, resultOf, sightOf, untilTrue } from '../chaos/commands'
import { compileLibrary, whyNoPreload, writeNumbers, writePython } from '../chaos/preload'
import { clear, setStage, startAll, stopAll, type Product, type Stage } from '../chaos/stage'
import { withFolder } from '../kit/folder'
import { harness, type Case, type Drawn, type Report } from '../kit/harness'
import { withServerOnly } from '../kit/server'
import { withProduct } from '../proof/product'
import { patient } from '../support/patience'
import { testServer } from '../support/temporal'

const OPTIONS = {
  keep: { default: false, means: 'keeps the folder of every run, not only of the broken ones' },
}

/** How long an operation takes, at least and at most, and for how long it is so. */
interface Slowness {
  delaysMs: readonly [number, number]
  forMs: number
}

type SlowCase = Case & { slowness: Slowness }

const SLOWNESS: Readonly<Record<string, Slowness>> = {
  'each operation takes 0.5 to 3 s': { delaysMs: [500, 3_000], forMs: 60_000 },
  'each operation hangs for 25 s': { delaysMs: [25_000, 25_000], forMs: 25_000 },
  'no operation ends': { delaysMs: [600_000, 600_000], forMs: 70_000 },
}

/** A command answers, or says what it waits for, within this time. */
const COMMAND_MAX_MS = 25_000
/** Commands that do not wait for a slow store; others go on as long as it answers. */
const BOUNDED = ['list', 'cancel']
const END_LIMIT_MS = 120_000
const WATCHED = ['running', 'saving'] as const
const CANCELLED = 'cancelled'
/** Jobs that train when the store becomes slow, one that is cancelled meanwhile, and one that is submitted meanwhile. */
const BEFORE = [...WATCHED, CANCELLED]

export const SLOW_STORE = harness({
  jobs: 1,
  options: OPTIONS,
  around: (_, use) => withProduct((product) => withServerOnly(() => use(product))),
  draw: (): SlowCase[] =>
    Object.entries(SLOWNESS).map(([name, slowness]) => ({ name, again: ['--only', name], slowness })),
  live: async (
    { slowness }: SlowCase,
    product: Product,
    { keep }: Drawn<typeof OPTIONS>,
  ): Promise<Report> => {
    const obstacle = whyNoPreload()
    if (obstacle !== undefined) return { state: `skipped: ${obstacle}`, breaches: [], story: [] }
    return withFolder('slow-store', (folder) => live({ product, folder, slowness, isKept: keep }))
  },
})

interface Setting {
  product: Product
  folder: string
  slowness: Slowness
  isKept: boolean
}

async function live({ product, folder, slowness, isKept }: Setting): Promise<Report> {
  const library = join(folder, 'slow-files.so')
  const numbers = join(folder, 'delays')
  compileLibrary(join(__dirname, 'slow-files.c'), library)
  writeNumbers(numbers, [0n, 0n])
  const variables: Record<string, string> = { LD_PRELOAD: library, SLOW_NUMBERS: numbers }
  const python = join(folder, 'python')
  const stage = await setStage({
    product,
    executable: testServer().executable,
    seed: 0,
    isLeaseShort: false,
    disks: [],
    settings: { CRUCIBLE_LOCAL_PYTHON: python, CRUCIBLE_LOCAL_SLOTS: '8' },
    ofWorkers: variables,
  })
  variables['SLOW_FOLDER'] = join(stage.home, 'store')
  writePython(python, variables)
  const setDelays = (delaysMs: readonly [number, number]): void =>
    writeNumbers(
      numbers,
      delaysMs.map((ms) => BigInt(ms) * 1_000_000n),
    )
  const breaches: string[] = []
  const story: string[] = []
  try {
    await startAll(stage)
    await play({ stage, product, folder, variables, slowness, setDelays, breaches, story })
  } catch (error) {
    breaches.push(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  setDelays([0, 0])
  const left = await stopAll(stage)
  breaches.push(...stage.failures)
  if (breaches.length === 0) breaches.push(...left.map((process) => `a process is left: ${process}`))
  clear(stage, { isKept: isKept || breaches.length > 0 })
  if (isKept || breaches.length > 0) story.unshift(`kept: ${stage.home}`)
  return { state: breaches.length === 0 ? 'held' : 'gave way', breaches, story }
}

interface Play {
  stage: Stage
  product: Product
  folder: string
  variables: Readonly<Record<string, string>>
  slowness: Slowness
  setDelays: (delaysMs: readonly [number, number]) => void
  breaches: string[]
  story: string[]
}

async function play({
  stage,
  product,
  folder,
  variables,
  slowness,
  setDelays,
  breaches,
  story,
}: Play): Promise<void> {
  const at = { stage, product }
  const run = async (...words: string[]): Promise<void> => {
    const beganMs = performance.now()
    const said = await crucible(at, words, variables).then(
      (text) => text,
      (error: unknown) => {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
        return `refused: ${stdout}${stderr} ${String(error)}`
      },
    )
    const tookMs = performance.now() - beganMs
    story.push(`${words.join(' ')} took ${Math.round(tookMs / SECOND_MS)} s: ${said.trim().slice(0, 300)}`)
    const isAway = slowness.delaysMs[0] > slowness.forMs
    if (isAway && /No job|not-found/.test(said)) breaches.push(`${words.join(' ')} found nothing: ${said}`)
    if (isAway && words[0] !== 'cancel' && !/not answer|no answer/.test(said))
      breaches.push(`${words.join(' ')} names no cause: ${said}`)
    const isBounded = isAway || BOUNDED.includes(words[0]!)
    const mostMs = patient(COMMAND_MAX_MS) + (isBounded ? 0 : slowness.forMs)
    if (tookMs > mostMs) breaches.push(`${words.join(' ')} took ${Math.round(tookMs / SECOND_MS)} s`)
  }
  const jobFile = (name: string): string => {
    const source = join(folder, 'jobs', name)
    mkdirSync(source, { recursive: true })
    copyFileSync(join(__dirname, '..', 'clocks', 'workload', 'train.py'), join(source, 'train.py'))
    const style = name === 'saving' ? 'saving' : 'quiet'
    const text = `name: slow\nrun: python3 train.py ${join(folder, 'go')} ${style}\ncheckpoint: {}\n`
    writeFileSync(join(source, 'job.yaml'), text)
    return join(source, 'job.yaml')
  }
  const sights = new Map([...BEFORE, 'late'].map((name) => [name, sightOf(stage, name)]))
  for (const name of BEFORE) await crucible(at, ['submit', jobFile(name), '--id', name, '--yes', '--json'])
  for (const name of BEFORE)
    await untilTrue(() => sights.get(name)!.beat()?.phase === 'running', `${name} trains`, END_LIMIT_MS)

  setDelays(slowness.delaysMs)
  const passing = sleep(slowness.forMs).then(() => setDelays([0, 0]))
  await Promise.all([
    run('cancel', CANCELLED),
    run('list'),
    run('show', 'running'),
    run('logs', 'running', '--tail', '5'),
  ])
  await run('submit', jobFile('late'), '--id', 'late', '--yes', '--json')
  await passing
  for (const name of WATCHED)
    if (sights.get(name)!.isOver) breaches.push(`${name} ended: ${resultOf(sights.get(name)!)?.message}`)
  writeFileSync(join(folder, 'go'), '')
  if (sights.get('late')!.records('submitted').length === 0)
    await crucible(at, ['submit', jobFile('late'), '--id', 'late', '--yes', '--json'])
  for (const [name, sight] of sights) {
    await untilTrue(() => sight.isOver, `${name} is over`, END_LIMIT_MS)
    const { state, message } = resultOf(sight)!
    story.push(`${name}: ${state} after ${sight.attempts().length}`)
    if (state !== (name === CANCELLED ? 'cancelled' : 'succeeded'))
      breaches.push(`${name} is ${state}: ${message}`)
    if (sight.attempts().length !== 1) breaches.push(`${name} had ${sight.attempts().length} attempts`)
  }
}
