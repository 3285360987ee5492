import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { analysisDocument } from '../../packages/analyzer/src/report'
import { World } from './outside'

const SCRIPT = join(__dirname, '..', 'analyze', 'scripts', 'torch-epochs-full', 'train.py')

describe('crucible analyze', () => {
  const world = new World()
  const path = (name: string): string => join(world.home, name)

  beforeAll(() => {
    mkdirSync(path('empty'))
    symlinkSync('loop.py', path('loop.py'))
    symlinkSync('.', path('self'))
    writeFileSync(path('binary.py'), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]))
    writeFileSync(path('latin.py'), Buffer.from([0x78, 0xff, 0xfe]))
    writeFileSync(path('large.py'), '')
    truncateSync(path('large.py'), 50 * 1024 * 1024)
    writeFileSync(path('notes.txt'), 'x')
    writeFileSync(path('job.yaml'), 'run: python3 train.py --epochs 4\n')
    writeFileSync(path('train.py'), 'print "old"\n')
  })

  afterAll(() => world.remove())

  it.each([
    ['missing.py', /There is no file .*missing\.py here/],
    ['caf\uFFFD.py', /name of .*caf.\.py is not UTF-8.* Rename it/],
    ['empty', /empty has no Python program/],
    ['loop.py', /loop\.py is a symbolic link that leads back to itself/],
    ['binary.py', /binary\.py is a binary file/],
    ['latin.py', /latin\.py is not UTF-8 text/],
    ['large.py', /large\.py is 52\.4 MB/],
    ['notes.txt', /notes\.txt is neither a Python script/],
  ])('refuses %s in one sentence', async (name, message) => {
    const { exitCode, stderr, stdout } = await world.run('analyze', path(name))
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' })
    expect(stderr).toMatch(message)
  })

  it('ends in a folder that links to itself', async () => {
    const { exitCode } = await world.run('analyze', path('self'))
    expect([0, 1]).toContain(exitCode)
  })

  it('exits with 1 if it cannot tell what the program of a job does', async () => {
    const { exitCode, stdout } = await world.run('analyze', path('job.yaml'))
    expect(exitCode).toBe(1)
    expect(stdout).toContain('train.py:1 is written for Python 2')
  })

  it('prints what it found, and where', async () => {
    const { exitCode, stdout } = await world.run('analyze', SCRIPT)
    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/saves +every epoch +95 % +\S*train\.py:48/)
    expect(stdout).toContain('Not known: model')
  })

  it('prints a document with --json', async () => {
    const { stdout } = await world.run('analyze', SCRIPT, '--json', '--', '--epochs', '7')
    const analysis = analysisDocument.parse(JSON.parse(stdout))
    expect(analysis.findings.epochs.value).toBe(7)
    expect(analysis.findings.canResume).toMatchObject({
      value: 'yes',
      how: { option: '--resume', isGiven: false },
    })
  })
})
