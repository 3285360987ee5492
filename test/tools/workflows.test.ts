/** The workflows for GitHub: they run what exists. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { HARNESSES } from '../proof/names'

const ROOT = join(__dirname, '../..')
interface Job {
  strategy?: { matrix: { node?: string[]; command?: string[] } }
  steps: { run?: string }[]
}
const jobsOf = (name: string): Record<string, Job> =>
  (
    parse(readFileSync(join(ROOT, '.github/workflows', `${name}.yml`), 'utf8')) as {
      jobs: Record<string, Job>
    }
  ).jobs

describe('each push', () => {
  it('runs what a newcomer runs on the oldest and the newest supported Node', () => {
    const { test } = jobsOf('ci')
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      engines: { node: string }
    }
    const { node } = test!.strategy!.matrix
    expect(engines.node).toBe(`>=${node![0]} <${Number(node!.at(-1)) + 1}`)
    expect(test!.steps.map(({ run }) => run)).toContain('.ci/run')
  })
})

describe('each night', () => {
  it('runs every proof', () => {
    const proofs = jobsOf('nightly')['long']!.strategy!.matrix.command!.flatMap(
      (command) => /^npm run proof -- ([a-z-]+)/.exec(command)?.[1] ?? [],
    )
    expect([...proofs].sort()).toEqual(Object.keys(HARNESSES).sort())
  })
})
