import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from '@jest/globals'
import { claimPort } from '../../../cli/dev/server'
import { freePort } from '../../../cli/dev/temporal/ports'
import { progressOn } from '../../../cli/dev/temporal/progress'

it('gives a port that is still free to one of two starts at the same time', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'crucible-claims-'))
  const notes: string[] = []
  const progress = progressOn({ write: (text: string) => notes.push(text) }, () => 0)
  const port = await freePort()
  const claims = [0, 1].map(() => claimPort(port, { progress, directory }))
  expect((await Promise.all(claims)).sort()).toEqual([port, undefined])
  expect(notes.join('')).toContain(`Port ${port} is taken by another`)
  await rm(directory, { recursive: true })
})
