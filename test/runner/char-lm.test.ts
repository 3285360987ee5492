import { describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { useWorlds } from './world'

const createWorld = useWorlds()
const EXAMPLE = join(__dirname, '..', '..', 'examples', 'char-lm')
const STEPS = 240
const TRAIN = `python3 train.py --steps ${STEPS} --save-every 20`

function code(): Record<string, string> {
  const texts = readdirSync(join(EXAMPLE, 'text')).map((name) => `text/${name}`)
  return Object.fromEntries(
    ['train.py', ...texts].map((path) => [path, readFileSync(join(EXAMPLE, path), 'utf8')]),
  )
}

describe('the example char-lm', () => {
  it('ends with the same weights however it is interrupted', async () => {
    const world = createWorld()
    const alone = join(world.folder, 'alone')
    const environment = {
      ...process.env,
      CRUCIBLE_CHECKPOINT_DIR: `${alone}/c`,
      CRUCIBLE_OUTPUT_DIR: `${alone}/o`,
    }
    const printed = execFileSync('python3', [join(EXAMPLE, 'train.py'), '--steps', String(STEPS)], {
      env: environment,
    })
    const losses = [...printed.toString().matchAll(/^step \d+\/\d+ loss ([\d.]+)$/gm)].map(([, loss]) =>
      Number(loss),
    )
    expect(losses.length).toBeGreaterThan(10)
    expect(losses.at(-1)!).toBeLessThan(losses[0]! - 0.5)

    const order = {
      bundle: await world.bundle(code()),
      run: TRAIN,
      checkpoint: { directory: 'checkpoints', everyMs: 0, quietMs: 300 },
    }
    const saved = await world.launch(order)
    await saved.untilBeat(({ progress }) => (progress?.step ?? 0) >= 50)
    await world.drain(1, {})
    expect(await saved.end()).toMatchObject({ outcome: 'stopped', exitCode: 143 })

    const killed = await world.launch({ ...order, attempt: 2 })
    await killed.untilBeat(({ checkpoint }) => checkpoint?.attempt === 2)
    process.kill(killed.runner(), 'SIGKILL')
    await killed.exited

    const last = await world.launch({ ...order, attempt: 3 })
    const result = await last.end()
    expect(result).toMatchObject({
      outcome: 'succeeded',
      restoredFrom: { attempt: 2 },
      progress: { step: STEPS, stepsTotal: STEPS },
    })
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
