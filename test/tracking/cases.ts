/** Programs that log to a tracker, run by the real runner under the real libraries: killed, and continued on another machine. */
import { join } from 'node:path'
import type { Beat, RunnerResult } from '../../core/documents'
import type { NeedsLibraries } from '../kit/libraries'
import { killAll, programsIn } from '../proof/machines'
import { World } from '../runner/world'
import { until } from '../support/until'
import type { MlflowServer } from './mlflow-server'

const PROGRAMS = join(__dirname, 'programs')
/** As in `lab.py`. */
const STEPS = [1, 2, 3, 4, 5, 6, 7, 8]

/** For the imports of the libraries, which may take long the first time. */
const START_LIMIT_MS = 120_000

export interface Case extends NeedsLibraries {
  name: string
  command: string
  tracker: 'mlflow' | 'wandb'
  /** How many runs the job has when it is killed, and at its end. */
  runs: readonly [killed: number, end: number]
  /** The metric that the only run must have at every step. */
  metric?: string
  /** What the runner must say. */
  remark?: RegExp
}

export const CASES: readonly Case[] = [
  {
    name: 'mlflow-loop',
    check: 'import mlflow',
    command: 'mlflow_loop.py',
    tracker: 'mlflow',
    runs: [1, 1],
    metric: 'loss',
  },
  {
    name: 'mlflow-dated',
    check: 'import mlflow',
    command: 'mlflow_dated.py',
    tracker: 'mlflow',
    runs: [1, 2],
    remark: /cannot continue the run of its tracker/,
  },
  {
    name: 'mlflow-params',
    check: 'import mlflow',
    command: 'mlflow_params.py',
    tracker: 'mlflow',
    runs: [1, 2],
    remark: /cannot continue the run of its tracker/,
  },
  {
    name: 'mlflow-ranks',
    check: 'import mlflow',
    command: 'mlflow_ranks.py',
    tracker: 'mlflow',
    runs: [2, 4],
  },
  {
    name: 'mlflow-trainer',
    check: 'import mlflow, torch, transformers, accelerate',
    command: 'trainer.py mlflow',
    tracker: 'mlflow',
    runs: [1, 1],
    metric: 'loss',
  },
  {
    name: 'mlflow-lightning',
    check: 'import mlflow, torch, lightning',
    command: 'lightning_logger.py mlflow',
    tracker: 'mlflow',
    runs: [1, 1],
  },
  {
    name: 'wandb-loop',
    check: 'import wandb',
    command: 'wandb_loop.py',
    tracker: 'wandb',
    runs: [1, 1],
  },
  {
    name: 'wandb-folds',
    check: 'import wandb',
    command: 'wandb_folds.py',
    tracker: 'wandb',
    runs: [3, 6],
  },
  {
    name: 'wandb-lightning',
    check: 'import wandb, torch, lightning',
    command: 'lightning_logger.py wandb',
    tracker: 'wandb',
    runs: [1, 1],
  },
  {
    name: 'wandb-trainer',
    check: 'import wandb, torch, transformers, accelerate',
    command: 'trainer.py wandb',
    tracker: 'wandb',
    runs: [1, 1],
  },
]

export interface Place {
  python: string
  /** The packed runner. */
  runner: string
  server: MlflowServer | undefined
}

/** Runs a case; answers what is not as it should be. */
export async function prove(one: Case, { python, runner, server }: Place): Promise<string[]> {
  const world = new World(runner, undefined, `job-${one.name}-${process.pid}`)
  try {
    const order = {
      bundle: await world.bundle(programsIn(PROGRAMS)),
      run: `"$PYTHON" ${one.command}`,
      env: {
        PYTHON: python,
        WANDB_MODE: 'offline',
        OMP_NUM_THREADS: '1',
        HF_HUB_OFFLINE: '1',
        GIT_PYTHON_REFRESH: 'quiet',
        ...(server === undefined ? {} : { MLFLOW_TRACKING_URI: server.url }),
      },
    }
    const first = await world.launch({ ...order, attempt: 1 })
    const [killed] = one.runs
    let beat: Beat | undefined
    const isReady = async (): Promise<boolean> => {
      beat = await first.beat()
      if (beat === undefined || trackersOf(beat, one).length !== killed) return false
      return beat.checkpoint !== null && isHalf(beat, one)
    }
    await until(isReady, START_LIMIT_MS).catch(async (error: unknown) => {
      await killAll(first)
      throw new Error(`it did not get far: ${JSON.stringify(beat)} ${first.console}`, { cause: error })
    })
    await killAll(first)
    const second = await world.launch({ ...order, attempt: 2 })
    const result = await second.end()
    const wrong = [...judge(one, beat!, result), ...(await judgeServer(one, server, world.jobId, beat!))]
    const remarks = await second.remarks()
    if (one.remark !== undefined && !one.remark.test(remarks)) wrong.push(`the runner said: ${remarks}`)
    return wrong.length === 0 ? [] : [...wrong, ...(await second.lines()).map(({ m }) => `  | ${m}`)]
  } finally {
    world.dispose()
  }
}

const trackersOf = ({ trackers = [] }: Beat | RunnerResult, { tracker }: Case): string[] =>
  trackers.filter(({ kind }) => kind === tracker).map(({ runId }) => runId)

/** Whether the program waits to be killed. */
const isHalf = ({ progress }: Beat, { name }: Case): boolean =>
  (progress?.step ?? 0) >= (name === 'wandb-folds' ? 7 : 4)

function judge(one: Case, beat: Beat, result: RunnerResult): string[] {
  const wrong: string[] = []
  const [known, end] = [trackersOf(beat, one), trackersOf(result, one)]
  if (result.outcome !== 'succeeded') wrong.push(`it ${result.outcome}: ${result.message}`)
  if (one.tracker === 'wandb' && end.length !== one.runs[1])
    wrong.push(`it has ${end.length} runs at its end, not ${one.runs[1]}: ${end.join(', ')}`)
  if (!known.every((id) => end.includes(id))) wrong.push(`of ${known.join(', ')} it knows ${end.join(', ')}`)
  return wrong
}

async function judgeServer(
  one: Case,
  server: MlflowServer | undefined,
  jobId: string,
  beat: Beat,
): Promise<string[]> {
  if (one.tracker !== 'mlflow' || server === undefined) return []
  const runs = await server.runsOf(jobId)
  const wrong: string[] = []
  if (runs.length !== one.runs[1]) wrong.push(`the server has ${runs.length} runs, not ${one.runs[1]}`)
  if (one.metric !== undefined && runs.length === 1) {
    const [{ info }] = runs as [(typeof runs)[0]]
    const steps = await server.stepsOf(info.run_id, one.metric)
    if (steps.join() !== STEPS.join()) wrong.push(`its steps are ${steps.join()}`)
    if (info.status !== 'FINISHED') wrong.push(`its status is ${info.status}`)
    const url = `${server.url}/#/experiments/${info.experiment_id}/runs/${info.run_id}`
    if (beat.trackers?.find(({ kind }) => kind === 'mlflow')?.url !== url)
      wrong.push(`its page is not ${url}`)
  }
  return wrong
}
