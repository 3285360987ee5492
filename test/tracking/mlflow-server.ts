/** A real tracking server of MLflow, and what it knows. */
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { until } from '../support/until'

interface MlflowRun {
  info: { run_id: string; experiment_id: string; status: string }
  data: { tags?: { key: string; value: string }[]; params?: { key: string; value: string }[] }
}

export interface MlflowServer {
  url: string
  /** The job's runs that do not belong to another run. */
  runsOf: (jobId: string) => Promise<MlflowRun[]>
  /** The steps at which a metric was logged, in order, each once. */
  stepsOf: (runId: string, metric: string) => Promise<number[]>
  stop: () => Promise<void>
}

export async function startMlflow(python: string, folder: string): Promise<MlflowServer> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const store = `sqlite:///${join(folder, 'mlflow.db')}`
  const child = spawn(
    python,
    [
      '-m',
      'mlflow',
      'server',
      '--host',
      '127.0.0.1',
      '--port',
      String(port),
      '--workers',
      '1',
      '--backend-store-uri',
      store,
      '--default-artifact-root',
      join(folder, 'artifacts'),
    ],
    { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => (said += data.toString()))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const ask = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(`${url}/api/2.0/mlflow/${path}`, {
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      headers: { 'Content-Type': 'application/json' },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the server of MLflow ended: ${said}`)
    return (await fetch(`${url}/health`).catch(() => undefined))?.ok === true
  }, 90_000)
  return {
    url,
    runsOf: async (jobId) => {
      const { experiments } = await ask<{ experiments: { experiment_id: string }[] }>('experiments/search', {
        max_results: 1000,
      })
      const { runs = [] } = await ask<{ runs?: MlflowRun[] }>('runs/search', {
        experiment_ids: experiments.map((each) => each.experiment_id),
        max_results: 1000,
      })
      const tag = ({ data }: MlflowRun, key: string): string | undefined =>
        data.tags?.find((each) => each.key === key)?.value
      return runs.filter(
        (run) => tag(run, 'crucible.job') === jobId && tag(run, 'mlflow.parentRunId') === undefined,
      )
    },
    stepsOf: async (runId, metric) => {
      const { metrics = [] } = await ask<{ metrics?: { step: number }[] }>(
        `metrics/get-history?run_id=${runId}&metric_key=${metric}`,
      )
      return [...new Set(metrics.map(({ step }) => Number(step)))].sort((one, other) => one - other)
    },
    stop: async () => {
      if (child.exitCode === null) process.kill(-child.pid!, 'SIGKILL')
      await ended
    },
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
