import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { chosen } from '../support/selection'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { until } from '../support/until'
import { lineOf } from './measure'
import { measure, PARTS, sizesOf } from './parts'

let at: TestConnection

beforeAll(async () => {
  quietWorkers()
  at = await connectTo()
})
afterAll(() => at.close())

/** The benchmarks that start a small cloud: a process has only one cloud at a time. */
const CLOUD_PARTS = ['recovery', 'queue', 'disks']
/** packages/small-cloud/test/throughput.test.ts keeps what `disks` is about. */
const CHOSEN_PARTS = chosen(CLOUD_PARTS, ['recovery', 'queue'])

async function checkFigures(name: string): Promise<void> {
  const measures = await measure(name, at, { sizes: sizesOf('tiny'), limitMs: 240_000 })
  // Without an aws CLI there is nothing to measure a checkpoint against.
  if (name !== 'checkpoint') expect(measures.length).toBeGreaterThan(0)
  for (const one of measures) {
    expect([one.name, Number.isFinite(one.value)]).toEqual([one.name, true])
    expect(lineOf(one)).toContain(one.bench)
  }
}

describe('a benchmark with a tiny size', () => {
  // Most of each is waiting, and how long it takes does not matter. What a benchmark waits for fails earlier, and says what it saw.
  it.concurrent.each(Object.keys(PARTS).filter((name) => !CLOUD_PARTS.includes(name)))(
    'ends with figures: %s',
    checkFigures,
    300_000,
  )

  it.concurrent(
    `ends with figures: ${CHOSEN_PARTS.join(', ')}`,
    async () => {
      for (const name of CHOSEN_PARTS) await checkFigures(name)
    },
    600_000,
  )
})

describe('npm run bench', () => {
  it('ends when it is asked to, in the midst of its work', async () => {
    const root = join(__dirname, '..', '..')
    const args = ['--import', './test/support/typescript.mjs', '-e', "require('./test/bench/main.ts')", '--']
    const child = spawn(process.execPath, [...args, '--only', 'throughput', '--tiny'], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let told = ''
    child.stderr.on('data', (text) => (told += String(text)))
    await until(() => told.includes('throughput ...'))
    child.kill('SIGTERM')
    const [code] = (await once(child, 'exit')) as [number | null]
    expect(code).toBe(143)
  }, 60_000)
})
