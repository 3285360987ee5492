import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import type { Cli } from '../../../cli/cli'
import { readCheckedRetrain, readRetrainFile } from '../../../cli/retraining/read-retrain'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crucible-read-retrain-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const cli = { now: () => Date.UTC(2026, 10, 27) } as Cli

async function fileWith(capacity: string): Promise<string> {
  const file = join(folder, 'retrain.yaml')
  await writeFile(file, `job: { run: echo x, workdir: none }\ncapacity: ${capacity}\n`)
  return file
}

describe('the file of a schedule', () => {
  it('is asked for by its kind when it is missing', async () => {
    await expect(readRetrainFile(cli, join(folder, 'none.yaml'))).rejects.toThrow(
      'Name a retraining file by its path',
    )
  })

  it.each([
    ['its first wish', '{ backend: ec3, types: p5.48xlarge, duration: 4d, max_upfront: $9 }'],
    [
      'a fallback',
      '{ backend: ec2, types: p5.48xlarge, duration: 4d, max_upfront: $9, fallbacks: [{ backends: ec3:spot }] }',
    ],
  ])('may name no unknown backend in %s of capacity', async (_, capacity) => {
    await expect(fileWith(capacity).then((file) => readCheckedRetrain(cli, file))).rejects.toThrow(
      /^capacity: Unknown backend ec3\. Did you mean ec2\? Known: .*local/,
    )
  })
})
