import { chmod, lchown, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { claimPort, devPorts } from '../../../cli/dev/server'
import { freePort } from '../../support/free-port'
import { progressOn } from '../../../cli/dev/temporal/progress'

const notes: string[] = []
const progress = progressOn({ write: (text: string) => notes.push(text) }, () => 0)
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'crucible-claims-'))
})

afterAll(() => rm(directory, { recursive: true }))

describe('of two starts at the same time', () => {
  it('one gets a port that is still free', async () => {
    const port = await freePort()
    const claims = [0, 1].map(() => claimPort(port, { progress, directory }))
    expect((await Promise.all(claims)).sort()).toEqual([port, undefined])
    expect(notes.join('')).toContain(`Port ${port} is taken by another \`crucible dev\`; using a free one.`)
  })

  it('one at most gets the usual ports of Temporal, which another program may have, and each the ports it asks for', async () => {
    const claims = [{}, {}, { grpc: 7333, ui: 8333 }].map((asked) => devPorts(asked, { progress, directory }))
    const [one, other, asked] = await Promise.all(claims)
    expect([one!.grpc, other!.grpc]).toContain(undefined)
    expect([one!.ui, other!.ui]).toContain(undefined)
    expect(asked).toEqual({ grpc: 7333, ui: 8333 })
    expect(notes.join('')).toMatch(
      /Port 7233 is taken by another .*; using a free one \(choose with --port\)\./,
    )
  })
})

const STRANGER = 54_321
const isRoot = process.getuid?.() === 0

describe('a claim on a port', () => {
  const tricks: readonly (readonly [string, (claims: string) => Promise<void>])[] = [
    ['others may write', (claims) => chmod(claims, 0o777)],
    ['is a link', (claims) => rename(claims, `${claims}-real`).then(() => symlink(`${claims}-real`, claims))],
    ...(isRoot ? [['is theirs', (claims: string) => lchown(claims, STRANGER, STRANGER)] as const] : []),
  ]

  it.each(tricks)(
    'removes no file where a stranger leads it: the folder of claims %s',
    async (_, prepare) => {
      const folder = await mkdtemp(join(directory, 'tricked-'))
      const [victim, claims] = [join(folder, 'victim'), join(folder, 'claims')]
      await mkdir(victim)
      await writeFile(join(victim, 'record.json'), 'damaged')
      await mkdir(claims)
      const port = await freePort()
      await symlink(victim, join(claims, String(port)))
      await prepare(claims)
      expect(await claimPort(port, { progress, directory: claims })).toBe(port)
      expect(await readdir(victim)).toEqual(['record.json'])
    },
  )
})
