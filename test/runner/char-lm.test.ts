import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { itInAll } from '../support/selection'
import { useWorlds } from './world'

const createWorld = useWorlds()
const EXAMPLE = join(__dirname, '..', '..', 'examples', 'char-lm')
/** More steps than an attempt gets to: no machine is so slow or so fast that it ends before it is interrupted. */
const ENDLESS = 1_000_000

const train = (steps: number): string => `python3 train.py --steps ${steps} --save-every 20`

function code(): Record<string, string> {
  const texts = readdirSync(join(EXAMPLE, 'text')).map((name) => `text/${name}`)
  return Object.fromEntries(
    ['train.py', ...texts].map((path) => [path, readFileSync(join(EXAMPLE, path), 'utf8')]),
  )
}

describe('the example char-lm', () => {
  itInAll('ends with the same weights however it is interrupted', async () => {
    const world = createWorld()
    const checkpoint = { directory: 'checkpoints', everyMs: 0, quietMs: 300, keep: 3 }
    const order = { bundle: await world.bundle(code()), run: train(ENDLESS), checkpoint }
    const saved = await world.launch(order)
    await saved.untilBeat(({ progress }) => (progress?.step ?? 0) >= 50)
    await world.drain(1, {})
    expect(await saved.end()).toMatchObject({ outcome: 'stopped', exitCode: 143 })

    const killed = await world.launch({ ...order, attempt: 2 })
    await killed.untilBeat((beat) => beat.checkpoint?.attempt === 2)
    process.kill(killed.runner(), 'SIGKILL')
    await killed.exited

    const steps = (await killed.beat())!.progress!.step! + 100
    const last = await world.launch({ ...order, run: train(steps), attempt: 3 })
    expect(await last.end()).toMatchObject({
      outcome: 'succeeded',
      restoredFrom: { attempt: 2 },
      progress: { step: steps, stepsTotal: steps },
    })

    const alone = join(world.folder, 'alone')
    const environment = { CRUCIBLE_CHECKPOINT_DIR: `${alone}/c`, CRUCIBLE_OUTPUT_DIR: `${alone}/o` }
    const printed = execFileSync('python3', [join(EXAMPLE, 'train.py'), '--steps', String(steps)], {
      env: { ...process.env, ...environment },
    })
    const losses = [...printed.toString().matchAll(/^step \d+\/\d+ loss ([\d.]+)$/gm)].map(([, loss]) =>
      Number(loss),
    )
    expect(losses.length).toBeGreaterThan(10)
    expect(losses.at(-1)!).toBeLessThan(losses[0]! - 0.5)
    expect(await world.artifact('weights.json')).toBe(readFileSync(join(alone, 'o/weights.json'), 'utf8'))
  })

  it('has a job file that names what it has', () => {
    const job = parse(readFileSync(join(EXAMPLE, 'job.yaml'), 'utf8')) as {
      run: string
      checkpoint: { directory: string }
    }
    expect(job).toMatchObject({ name: 'char-lm', run: 'python3 train.py', interruptible: true })
    expect(code()['train.py']).toContain('CRUCIBLE_CHECKPOINT_DIR')
  })
})
