import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { COMMANDS, HIDDEN_COMMANDS } from '../../../cli/program'
import { putRecord } from '../../../storage/record'
import { Cli } from '../../../cli/cli'
import { NOW, SPEC } from '../../client/world'
import { World } from '../outside'
import { partialEntry } from '../../support/record'

let world: World

beforeEach(() => {
  world = new World()
})

afterEach(() => world.remove())

async function script(shell: string): Promise<string> {
  return (await world.run('completion', shell)).stdout
}

/** What bash offers for the last of some words, with a `crucible` that has two jobs and is called by its path. */
async function offered(...words: string[]): Promise<string[]> {
  const program = join(world.home, 'crucible')
  writeFileSync(program, '#!/bin/sh\n[ "$1" = jobs-for-completion ] && printf "job-a1\\njob-b2\\ntrain\\n"\n')
  chmodSync(program, 0o755)
  const { stdout, stderr, status } = spawnSync(
    'bash',
    [
      '--norc',
      '-c',
      `${await script('bash')}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _crucible; printf '%s\\n' "\${COMPREPLY[@]}"`,
      'bash',
      program,
      ...words,
    ],
    { encoding: 'utf8', env: { PATH: '/usr/bin:/bin' } },
  )
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 })
  return stdout.split('\n').filter((line) => line !== '')
}

const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).error === undefined

describe('completion', () => {
  it('of bash offers commands, flags, jobs and words', async () => {
    expect(await offered('')).toEqual([...COMMANDS.map(({ name }) => name), 'help'])
    expect(await offered('li')).toEqual(['list'])
    expect(await offered('show', '')).toEqual(['job-a1', 'job-b2', 'train'])
    expect(await offered('logs', '-f', 'job-b')).toEqual(['job-b2'])
    expect(await offered('list', '--st')).toEqual(['--state'])
    expect(await offered('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    // Files are offered by bash itself where we offer nothing.
    expect(await offered('submit', '')).toEqual([])
  })

  it.each(['bash', 'zsh', 'fish'])(
    'of %s knows every command and flag, and none that is hidden',
    async (shell) => {
      const text = await script(shell)
      for (const { name } of COMMANDS) expect(text).toContain(name)
      expect(text).toMatch(shell === 'fish' ? /-l gpu-memory / : /--gpu-memory/)
      for (const { name } of HIDDEN_COMMANDS)
        expect(text).not.toMatch(new RegExp(`(?:-a |'|\\s)${name}['):]`))
      expect(text).toContain(' jobs-for-completion')
    },
  )

  const asked = [
    ['zsh', '-n'],
    ['fish', '--no-execute'],
  ] as const
  for (const [shell, flag] of asked)
    // A machine without that shell cannot check this.
    (isInstalled(shell) ? it : it.skip)(`of ${shell} is a program to that shell`, async () => {
      const path = join(world.home, `completion.${shell}`)
      writeFileSync(path, await script(shell))
      const { status, stderr } = spawnSync(shell, [flag, path], { encoding: 'utf8' })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    })

  it('takes ids and names from the store alone, each once, newest first', async () => {
    const { store } = new Cli(world.outside().outside, false).context()
    const names = [SPEC.name, SPEC.name, '$(touch owned)', 'a\nb']
    for (const [index, id] of ['job-old', 'job-new', 'job-1', 'job-2'].entries()) {
      const data = { jobId: id, spec: { ...SPEC, name: names[index]! }, submittedAtMs: NOW + index }
      await putRecord(store, id, partialEntry({ seq: 0, atMs: NOW, kind: 'submitted', summary: '', data }))
    }
    expect(await world.run('jobs-for-completion')).toEqual({
      exitCode: 0,
      // A shell expands the words that it completes.
      stdout: 'job-2\njob-1\njob-new\njob-old\ntrain\n',
      stderr: '',
    })
    world.environment.CRUCIBLE_STORE = 'nonsense'
    expect(await world.run('jobs-for-completion')).toEqual({ exitCode: 0, stdout: '', stderr: '' })
  })
})
