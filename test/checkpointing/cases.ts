/** Programs with the helpers of `crucible.checkpoint`, under the real runner and the real libraries. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { RunnerResult } from '../../core/documents'
import type { NeedsLibraries } from '../kit/libraries'
import { killAll, programsIn } from '../proof/machines'
import { World, type Machine } from '../runner/world'
import { until } from '../support/until'

const PROGRAMS = join(__dirname, 'programs')
const COMPARE = join(__dirname, '../analyze/resumes/compare.py')
/** For the imports of the libraries, which may take long the first time. */
const START_LIMIT_MS = 180_000
/** The step in which the first attempt waits: in the middle of an epoch, and one after a save. */
const HOLD = 9
const STEPS = 18

export interface Case extends NeedsLibraries {
  name: string
  command: string
  /** What it writes at its end. */
  final: string
  /** The step of the last save before the one that is interrupted. */
  saved: number
  /** How many steps it has done at its end, after a kill and after a notice. */
  ends: readonly [killed: number, noticed: number]
  /** Whether it then has the weights of an undisturbed training, bit for bit. */
  isEqual: readonly [killed: boolean, noticed: boolean]
}

const EXACT = { saved: 8, ends: [STEPS, STEPS], isEqual: [true, true] } as const

export const CASES: readonly Case[] = [
  {
    name: 'pytorch',
    check: 'import torch, numpy',
    command: '"$PYTHON" pytorch_loop.py',
    final: 'final.pt',
    ...EXACT,
  },
  {
    name: 'pytorch-ranks',
    check: 'import torch, numpy',
    final: 'final.pt',
    ...EXACT,
    command: '"$PYTHON" -m torch.distributed.run --standalone --nproc-per-node 2 pytorch_ranks.py',
  },
  {
    name: 'lightning',
    check: 'import torch, lightning',
    command: '"$PYTHON" lightning_fit.py',
    final: 'final.pt',
    ...EXACT,
    isEqual: [false, false],
  },
  {
    name: 'huggingface',
    check: 'import torch, transformers, accelerate',
    command: '"$PYTHON" huggingface_trainer.py',
    final: 'final.pt',
    ...EXACT,
  },
  {
    name: 'keras',
    check: 'import keras, numpy',
    command: '"$PYTHON" keras_fit.py',
    final: 'final.npz',
    // The interrupted epoch is repeated with the weights that it had reached.
    saved: 6,
    ends: [STEPS, HOLD + 12],
    isEqual: [true, false],
  },
]

interface Place {
  python: string
  /** The packed runner. */
  runner: string
}

/** Runs a case undisturbed, killed without notice, and with notice; answers what is not as it should be. */
export async function prove(one: Case, place: Place): Promise<string[]> {
  const undisturbed = new Life(one, place, 'undisturbed')
  const killed = new Life(one, place, 'killed')
  const noticed = new Life(one, place, 'noticed')
  try {
    const whole = await undisturbed.run(1)
    await killed.interrupt(killAll)
    const afterKill = await killed.run(2)
    const stopped = await noticed.interrupt(async (machine) => {
      await noticed.drain()
      await machine.exited
    })
    const afterNotice = await noticed.run(2)
    const path = (life: Life, attempt: number): string => join(life.root(attempt), 'output', one.final)
    const compared = [killed, noticed].map((life) =>
      differenceOf(place.python, [path(undisturbed, 1), path(life, 2)]),
    )
    return [
      ...expectEnd('undisturbed', whole, { from: undefined, steps: STEPS }),
      ...expectEnd('killed', afterKill, { from: one.saved, steps: one.ends[0] }),
      ...expectStop(await stopped.result()),
      ...expectEnd('with notice', afterNotice, { from: HOLD, steps: one.ends[1] }),
      ...compared.flatMap((difference, at) =>
        one.isEqual[at]! && difference !== undefined
          ? [`${['killed', 'with notice'][at]}: it ended otherwise: ${difference}`]
          : [],
      ),
    ]
  } finally {
    for (const life of [undisturbed, killed, noticed]) life.dispose()
  }
}

/** A job in a world of its own. */
class Life {
  readonly #world: World

  constructor(
    private readonly one: Case,
    private readonly place: Place,
    name: string,
  ) {
    this.#world = new World(place.runner, undefined, `job-${one.name}-${name}-${process.pid}`)
  }

  root(attempt: number): string {
    return join(this.#world.folder, `machine-${attempt}`)
  }

  /** Runs an attempt to its end. */
  async run(attempt: number): Promise<RunnerResult> {
    const machine = await this.#launch(attempt, {})
    const result = await machine.end()
    if (result.outcome !== 'succeeded') throw new Error(`${result.message}\n${await wordsOf(machine)}`)
    return result
  }

  /** Starts the first attempt, and interrupts it once it waits in step `HOLD` and its last save is in the store. */
  async interrupt(how: (machine: Machine) => Promise<void>): Promise<Machine> {
    const machine = await this.#launch(1, { HOLD: String(HOLD) })
    const isReady = async (): Promise<boolean> => {
      const beat = await machine.beat()
      return beat?.checkpoint?.step === this.one.saved && (await wordsOf(machine)).includes('holding')
    }
    await until(isReady, START_LIMIT_MS).catch(async (error: unknown) => {
      await killAll(machine)
      throw new Error(`it did not get far:\n${await wordsOf(machine)}`, { cause: error })
    })
    await how(machine)
    return machine
  }

  drain(): Promise<void> {
    return this.#world.drain(1, { windowMs: 30_000 })
  }

  dispose(): void {
    this.#world.dispose()
  }

  async #launch(attempt: number, env: Record<string, string>): Promise<Machine> {
    return this.#world.launch({
      attempt,
      bundle: await this.#world.bundle(programsIn(PROGRAMS)),
      run: this.one.command,
      env: {
        PYTHON: this.place.python,
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONHASHSEED: '0',
        OMP_NUM_THREADS: '1',
        HF_HUB_OFFLINE: '1',
        KERAS_BACKEND: 'jax',
        JAX_PLATFORMS: 'cpu',
        ...env,
      },
    })
  }
}

const wordsOf = async (machine: Machine): Promise<string> =>
  (await machine.lines()).map(({ m }) => `  | ${m}`).join('\n')

function expectEnd(
  what: string,
  { restoredFrom, progress }: RunnerResult,
  { from, steps }: { from: number | undefined; steps: number },
): string[] {
  const wrong: string[] = []
  if (restoredFrom?.step !== from)
    wrong.push(`${what}: it began after step ${restoredFrom?.step}, not ${from}`)
  if (progress?.step !== steps) wrong.push(`${what}: it ended after step ${progress?.step}, not ${steps}`)
  return wrong
}

function expectStop(result: RunnerResult | undefined): string[] {
  const { outcome, checkpoint, checkpointState } = result ?? {}
  const isRight = outcome === 'stopped' && checkpoint?.step === HOLD && checkpointState === 'complete'
  return isRight
    ? []
    : [`with notice: ${outcome} with step ${checkpoint?.step}, ${checkpointState}: ${result?.message}`]
}

/** `undefined` if both files hold the same values, bit for bit; otherwise the first difference. */
function differenceOf(python: string, files: readonly string[]): string | undefined {
  const { status, stdout, stderr } = spawnSync(python, [COMPARE, ...files], { encoding: 'utf8' })
  return status === 0 ? undefined : `${stdout}${stderr}`.trim()
}
