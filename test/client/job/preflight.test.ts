import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import { preflight } from '../../../client/job/preflight'
import type { JobSpec } from '../../../core/job/job'
import type { ObjectStore } from '../../../storage/store'
import { ClientWorld, SPEC } from '../world'

let world: ClientWorld
let directory: string

beforeEach(async () => {
  world = await ClientWorld.make({ SET: 'x' })
  directory = join(world.folder, 'code')
  mkdirSync(join(directory, 'src'), { recursive: true })
  for (const name of ['train.py', 'src/evaluate.py', 'secret.py']) writeFileSync(join(directory, name), '')
  writeFileSync(join(directory, '.gitignore'), 'secret.py\n')
})

afterEach(() => world.remove())

const check = (spec: Partial<JobSpec>, folder: string | null | undefined = directory): Promise<string[]> =>
  preflight(world.context, { spec: { ...SPEC, ...spec }, directory: folder }, ['local', 'ec2'])

describe('before a job is sent', () => {
  it.each([
    ['train.py', 'trian.py'],
    ['src/evaluate.py', 'evaluate.py'],
  ])('a missing script is found, and %s is what was meant by %s', async (right, wrong) => {
    await expect(check({ run: `python3 ${wrong} --lr 3` })).rejects.toMatchObject({
      kind: 'usage',
      message: `The command runs ${wrong}, which is not among the files that are sent along from ${directory}. Did you mean ${right}?`,
    })
    expect(await check({ run: `python3 ${right}` })).toEqual([])
  })

  it.each([
    ['cd scr && python3 evaluate.py', 'changes into scr', ' Did you mean src?'],
    ['set -x; cd src\npython3 evaluat.py', 'runs src/evaluat.py', ' Did you mean src/evaluate.py?'],
  ])('the folder of a command is followed: %j', async (run, does, hint) => {
    await expect(check({ run })).rejects.toMatchObject({
      message: `The command ${does}, which is not among the files that are sent along from ${directory}.${hint}`,
    })
  })

  it.each<Partial<JobSpec>>([
    { run: 'cd ./src/ && python3 evaluate.py' },
    { run: 'mkdir -p made && cd made && python3 x.py' },
    { run: 'cd made || cd src; python3 evaluate.py' },
    { run: 'set +e; cd made; python3 train.py' },
    { run: 'cd made; python3 train.py', shell: 'sh' },
    { run: 'cd made && python3 x.py', inputs: [{ source: 'https://x/y', path: 'made/x.py' }] },
    { run: 'cd made && python3 x.py', inputs: [{ source: 's3://x/y/', path: 'made' }] },
    { run: 'cd made && python3 ../train.py', outputs: ['made/out'] },
    { run: 'cd link && python3 evaluate.py' },
    { run: 'cd $WHERE && python3 x.py' },
  ])('a folder that may exist on the machine is not missed: %j', async (spec) => {
    symlinkSync('src', join(directory, 'link'))
    expect(await check(spec)).toEqual([])
  })

  it('an input that this computer lacks is warned about where the store is a folder of it', async () => {
    const inputs = ['file:///nothing/here.csv', `file://${directory}/train.py`, 'https://x/y'].map(
      (source) => ({
        source,
        path: `data${source.length}`,
      }),
    )
    const spec = { run: 'true', inputs }
    const warnings = [
      'The input file:///nothing/here.csv does not exist on this computer. The job fails on a machine that lacks it.',
    ]
    expect(await check(spec)).toEqual(warnings)
    jest.spyOn(world.context, 'store', 'get').mockReturnValue({ url: 's3://bucket' } as ObjectStore)
    expect(await check(spec)).toEqual([])
  })

  it('a script that an ignore file leaves out is missing', async () => {
    await expect(check({ run: 'python3 secret.py' })).rejects.toMatchObject({ kind: 'usage' })
  })

  it.each<[string, Partial<JobSpec>, string | null | undefined]>([
    ['a set-up command may make', { setup: 'git clone ...' }, undefined],
    ['an input brings', { inputs: [{ source: 'https://x/y', path: 'made.py' }] }, undefined],
    ['an image may hold', { image: 'image:1' }, null],
  ])('a script that %s is not missed', async (_what, spec, folder) => {
    const where = folder === null ? null : directory
    expect(await check({ run: 'python3 made.py', ...spec }, where)).toEqual([])
  })

  it('a script behind a link that is sent along is not missed', async () => {
    symlinkSync('src', join(directory, 'link'))
    expect(await check({ run: 'python3 link/evaluate.py' })).toEqual([])
  })

  it('a script is missed where nothing is sent along', async () => {
    await expect(check({ run: 'python3 train.py' }, null)).rejects.toMatchObject({
      message: expect.stringContaining('nothing is sent along'),
    })
  })

  it('unknown backends and unset secrets are found, all at once', async () => {
    const spec = { run: 'python3 x.py', backends: [{ backend: 'locla' }], secrets: ['SET', 'HF_TOKEN'] }
    await expect(check(spec)).rejects.toMatchObject({
      details: {
        problems: [
          expect.stringContaining('The command runs x.py'),
          'Unknown backend locla. Did you mean local? Known: local, ec2.',
          expect.stringContaining('The job needs the secret HF_TOKEN, which is not set here.'),
        ],
      },
    })
  })

  it("a backend is recognised by its provider's name", async () => {
    const spec = { run: 'true', backends: [{ backend: 'AWS' }] }
    await expect(check(spec)).rejects.toMatchObject({
      message: 'Unknown backend AWS. Did you mean ec2? Known: local, ec2.',
    })
  })

  it('a folder that would be refused is refused', async () => {
    writeFileSync(join(directory, '.env'), 'A=1')
    await expect(check({ run: 'python3 nosuch.py' })).rejects.toMatchObject({
      details: { problems: [expect.stringContaining('files that look like secrets')] },
    })
  })

  it('a file that no machine can run is found', async () => {
    writeFileSync(join(directory, 'run.sh'), '#!/bin/sh\r\necho hi\r\n')
    await expect(check({ run: './run.sh' })).rejects.toMatchObject({
      details: {
        problems: [expect.stringContaining('chmod +x run.sh'), expect.stringContaining('carriage return')],
      },
    })
  })

  it('an empty secret is refused, and space around one is warned about unless it is a key in lines', async () => {
    const values = {
      EMPTY: '',
      BYTES: 'caf\uFFFD',
      NEWLINE: 'abc\n',
      SPACE: ' abc',
      KEY: '-----BEGIN\nabc\n',
      FINE: 'a b',
    }
    const other = await ClientWorld.make(values)
    const from = (secrets: string[]): Promise<string[]> =>
      preflight(other.context, { spec: { ...SPEC, run: 'true', secrets }, directory: null }, ['local'])
    await expect(from(['EMPTY', 'FINE'])).rejects.toMatchObject({
      message: expect.stringMatching(/^The job needs the secret EMPTY, which is empty here: check/),
    })
    await expect(from(['BYTES', 'FINE'])).rejects.toThrow('the secret BYTES, which is not UTF-8 here')
    expect(await from(['NEWLINE', 'SPACE', 'KEY', 'FINE'])).toEqual([
      'The secret NEWLINE ends with a line break, which its program gets too. To leave it out, write NEWLINE="$(cat FILE)".',
      'The secret SPACE begins or ends with a space, which its program gets too. Remove it if it is a slip.',
    ])
    await other.remove()
  })

  it('an unknown accelerator is warned about, since it may be new', async () => {
    expect(await check({ run: 'true', resources: { accelerators: ['H100', 'H10O'] } })).toEqual([
      'Unknown accelerator H10O: only machines that report this name will match. Did you mean H100?',
    ])
  })
})
