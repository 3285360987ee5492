import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { QUICK_COMMANDS } from '../../cli/quick'
import { World } from './outside'
import { build, CommandLine } from './process'

const QUICK = join(__dirname, '..', '..', 'dist', 'cli', 'quick.js')

/** What a process of its own, without the test's loaders, finds. */
function find<T>(expression: string): T {
  const program = `const quick = require(${JSON.stringify(QUICK)}); console.log(JSON.stringify(${expression}))`
  return JSON.parse(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' })) as T
}

describe('quick commands', () => {
  let world: World
  let line: CommandLine

  beforeAll(() => {
    build()
    world = new World()
    line = new CommandLine(world.environment, world.home)
  }, 120_000)

  afterAll(() => line.close())

  it.each(QUICK_COMMANDS)('%s shows the help that its own file has', async (name) => {
    expect(await line.run(name, '--help')).toEqual(await world.run(name, '--help'))
  })

  it.each([
    ['list', '--state', 'lost'],
    ['list', '--json'],
    ['show', 'nothing', '--json'],
    ['--json', 'logs', 'nothing', '--since', 'soon'],
    ['events'],
    ['jobs-for-completion'],
  ])('%s %s fails or answers as its own file does', async (...args) => {
    expect(await line.run(...args)).toEqual(await world.run(...args))
  })

  it('come from the bundle, with the code that V8 kept, and other commands from their files', () => {
    const start = `quick.loadQuick(['--json', 'list', '--mine']).startProcess.name`
    expect(find(`[${start}, Object.keys(require.cache)]`)).toEqual(['startProcess', [QUICK]])
    const cached = 'quick.compileQuick(require("node:fs").readFileSync(quick.QUICK_CODE_CACHE))'
    expect(find(`${cached}.cachedDataRejected`)).toBe(false)
    expect(
      find(`[['submit', 'list'], ['--help'], []].map((args) => quick.loadQuick(args) === undefined)`),
    ).toEqual([true, true, true])
  })
})
