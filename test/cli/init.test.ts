import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { World, type Answer } from './outside'

let world: World
let code: string
beforeEach(() => {
  world = new World()
  code = join(world.home, 'code')
  cpSync(join(__dirname, '..', 'analyze', 'scripts', 'torch-epochs-full'), code, { recursive: true })
})
afterEach(() => world.remove())

const init = (...args: string[]): Promise<Answer> => world.run('init', ...args)

describe('crucible init', () => {
  it('writes the command of a program, and each setting that it shows with its reason', async () => {
    writeFileSync(join(code, 'requirements.txt'), 'torch\n')
    const { exitCode, stdout } = await init(join(code, 'train.py'), '--', '--epochs', '3')
    expect(exitCode).toBe(0)
    const file = join(code, 'job.yaml')
    expect(stdout).toBe(`Wrote ${file}. See where the job would run: \`crucible plan ${file}\`.\n`)
    expect(readFileSync(file, 'utf8')).toBe(`name: train
# run: the program resumes with this option (train.py:36)
run: python3 train.py --epochs 3 \${CRUCIBLE_RESUME_FROM:+--resume "$CRUCIBLE_RESUME_FROM"}
setup: pip install -r requirements.txt
# interruptible: the program saves and resumes (train.py:36)
interruptible: true
# checkpoint.directory: the program saves there (train.py:48)
checkpoint:
  directory: runs

# Add what the program does not show:
# duration: 6h      # your estimate of the training time, to compare offers
# budget: $25       # the most that the job may cost
# deadline: 36h     # when it must be over
`)
    expect((await world.run('submit', '--dry-run', '--no-analyze', file)).stdout).toContain('--epochs 3')
  })

  it('finds the program of a folder, and names the folder in a file elsewhere', async () => {
    const file = join(world.home, 'jobs', 'first.yaml')
    expect((await init(code, '--output', file)).stderr).toContain('There is no folder')
    mkdirSync(join(world.home, 'jobs'))
    const { stdout } = await init(code, '--output', file, '--json')
    const { text } = JSON.parse(stdout) as { text: string }
    expect(text).toContain('\nworkdir: ../code\n')
    expect(readFileSync(file, 'utf8')).toBe(text)
  })

  it('replaces a file only if told so', async () => {
    writeFileSync(join(code, 'job.yaml'), 'mine')
    expect(await init(code)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('already exists.\n'),
    })
    expect(readFileSync(join(code, 'job.yaml'), 'utf8')).toBe('mine')
    expect((await init(code, '--force')).exitCode).toBe(0)
    expect(readFileSync(join(code, 'job.yaml'), 'utf8')).toMatch(/^name: train\n/)
  })

  it('writes the command alone for a program that trains nothing', async () => {
    const folder = join(world.home, 'other')
    mkdirSync(folder)
    writeFileSync(join(folder, 'hello.py'), 'print(1)\n')
    for (const target of [join(folder, 'hello.py'), folder]) {
      expect((await init('--force', target)).exitCode).toBe(0)
      expect(readFileSync(join(folder, 'job.yaml'), 'utf8')).toMatch(
        /^name: hello\nrun: python3 hello\.py\n\n# /,
      )
    }
    writeFileSync(join(folder, 'second.py'), '')
    expect((await init(folder)).stderr).toMatch(
      /Nothing shows which program of .*hello\.py, .*second\.py: `crucible init SCRIPT`/s,
    )
  })

  it.each([
    ['a folder without a program', 'empty', /has no Python program/],
    ['a notebook', 'a.ipynb', /shows no Python script that a job could run.*nbconvert/s],
    ['nothing', 'none.py', /There is no file/],
  ])('refuses %s', async (_what, target, complaint) => {
    mkdirSync(join(world.home, 'empty'))
    writeFileSync(
      join(world.home, 'a.ipynb'),
      '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    )
    const { exitCode, stderr } = await init(join(world.home, target))
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringMatching(complaint) })
  })
})
