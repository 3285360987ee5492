import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Cli } from '../../cli/cli'
import { COMMANDS } from '../../cli/program'
import { homeOf, writeDevNote, type DevNote } from '../../client/config'
import { makeMarkedFolder } from '../support/marked-store'
import { World } from './outside'

let world: World

beforeEach(() => {
  world = new World()
})

afterEach(() => world.remove())

const NAMES = COMMANDS.map(({ name }) => name)
/** Arguments with which a command gets as far as it can without a server; none where it would start one, or wait for one. */
const WITHOUT_SERVER: Record<string, { args: string[]; exitCode: number }> = {
  submit: { args: ['job.yaml'], exitCode: 7 },
  plan: { args: ['job.yaml'], exitCode: 0 },
  analyze: { args: ['missing.py'], exitCode: 2 },
  init: { args: ['missing.py'], exitCode: 2 },
  cancel: { args: ['job-none'], exitCode: 5 },
  retry: { args: ['job-none'], exitCode: 5 },
  schedule: { args: ['show', 'none'], exitCode: 5 },
  migrate: { args: ['job-none'], exitCode: 5 },
  extend: { args: ['job-none', '--budget', '1'], exitCode: 5 },
  list: { args: [], exitCode: 7 },
  show: { args: ['job-none'], exitCode: 5 },
  why: { args: ['job-none'], exitCode: 5 },
  logs: { args: ['job-none'], exitCode: 5 },
  events: { args: ['job-none'], exitCode: 5 },
  artifacts: { args: ['job-none'], exitCode: 5 },
  checkpoints: { args: ['job-none', 'verify'], exitCode: 5 },
  setup: { args: ['nobody'], exitCode: 2 },
  worker: { args: ['nobody'], exitCode: 2 },
  workers: { args: [], exitCode: 7 },
  budget: { args: [], exitCode: 7 },
  costs: { args: [], exitCode: 0 },
  reservations: { args: ['show', 'res-none'], exitCode: 5 },
  gc: { args: [], exitCode: 7 },
  interrupt: { args: ['job-none'], exitCode: 5 },
  doctor: { args: [], exitCode: 1 },
  completion: { args: ['bash'], exitCode: 0 },
  rehearse: { args: ['missing.yaml'], exitCode: 2 },
  demo: { args: ['too many'], exitCode: 2 },
  dev: { args: [], exitCode: 7 },
}

function jobFile(text = 'run: "true"\n'): string {
  const path = join(world.home, 'job.yaml')
  writeFileSync(path, text)
  return path
}

function argsOf(name: string): string[] {
  return WITHOUT_SERVER[name]!.args.map((arg) => (arg === 'job.yaml' ? jobFile() : arg))
}

describe.each(NAMES)('crucible %s', (name) => {
  it('shows its help with examples', async () => {
    for (const args of [
      [name, '--help'],
      ['help', name],
    ]) {
      const { exitCode, stdout, stderr } = await world.run(...args)
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
      expect(stdout).toMatch(new RegExp(`^Usage: crucible ${name}[^]*\\nExamples:\\n.*crucible`))
      for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(110)
    }
  })

  it('prints one JSON document, whatever happens', async () => {
    const { exitCode } = WITHOUT_SERVER[name]!
    const answer = await world.run(name, '--json', ...argsOf(name))
    expect(answer.exitCode).toBe(exitCode)
    const document = JSON.parse(answer.stdout) as { error?: unknown }
    if (exitCode > 1) {
      expect(document.error).toMatchObject({ kind: expect.any(String), message: expect.any(String) })
      expect(answer.stderr).toBe('')
    }
    const bad = await world.run(name, '--json', '--no-such-flag')
    expect(bad).toMatchObject({ exitCode: 2, stderr: '' })
    expect(JSON.parse(bad.stdout)).toMatchObject({ error: { kind: 'usage' } })
    expect(JSON.parse((await world.run(name, '--help', '--json')).stdout)).toEqual({
      schema: 'crucible/1',
      help: expect.any(String),
    })
  })

  it('tells people on stderr what happened and what to do, without colours', async () => {
    const { exitCode, stdout, stderr } = await world.run(name, ...argsOf(name))
    expect(exitCode).toBe(WITHOUT_SERVER[name]!.exitCode)
    expect(stdout + stderr).not.toContain('\u001b')
    expect(stdout + stderr).not.toMatch(/undefined|\[object|NaN|\.\.(?:\s|$)| {4}at /)
    if (exitCode > 1) {
      expect(stdout).toBe('')
      expect(stderr).toMatch(/^error: .+\.\s+\S.+/)
    }
  })
})

describe('a simulated deployment', () => {
  const environment = { CRUCIBLE_BACKENDS: 'ec2' }
  const NOTE: DevNote = {
    pid: process.pid,
    address: 'localhost:1',
    uiUrl: '',
    environment,
    cloud: { url: 'http://127.0.0.1:4566', simulated: ['ec2'], controlKey: 'of-the-test' },
  }
  const SAYS = /^Simulated: ec2 of `crucible dev --sim`\./

  it('says so on every screen of it, and in each document', async () => {
    writeDevNote(homeOf(world.environment), NOTE)
    for (const args of [
      ['costs'],
      ['list'],
      ['show', 'job-none'],
      ['reservations', 'show', 'res-none'],
      ['doctor'],
    ])
      expect((await world.run(...args)).stderr).toMatch(SAYS)
    const { stdout, stderr } = await world.run('costs', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ simulated: ['ec2'] })
    expect(stderr).toBe('')
  })

  it('is not taken for the real one: a help, another server or another store says nothing', async () => {
    writeDevNote(homeOf(world.environment), NOTE)
    for (const args of [
      ['costs', '--help'],
      ['completion', 'bash'],
    ])
      expect((await world.run(...args)).stderr).toBe('')
    world.environment['CRUCIBLE_STORE'] = `file://${world.home}/real`
    makeMarkedFolder(join(world.home, 'real'))
    expect((await world.run('costs')).stderr).toBe('')
    delete world.environment['CRUCIBLE_STORE']
    world.environment['TEMPORAL_ADDRESS'] = 'localhost:2'
    expect((await world.run('costs')).stderr).toBe('')
    expect(JSON.parse((await world.run('costs', '--json')).stdout)).not.toHaveProperty('simulated')
  })
})

describe('crucible', () => {
  it('names every command in its help, and itself as it is called', async () => {
    for (const args of [[], ['help'], ['--help'], ['-h']]) {
      const { exitCode, stdout } = await world.run(...args)
      expect(exitCode).toBe(0)
      for (const name of NAMES) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'))
      for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(90)
    }
  })

  const root = join(__dirname, '../..')
  it.each([
    ['by the program of the clone', join(root, 'crucible'), {}, './crucible'],
    [
      'by npm run',
      join(root, 'dist/cli/main.js'),
      { npm_lifecycle_event: 'crucible' },
      'npm run crucible --',
    ],
    ['by npm run demo', join(root, 'dist/cli/main.js'), { npm_lifecycle_event: 'demo' }, './crucible'],
    ['by npx of a project that has it', '/project/node_modules/.bin/crucible', {}, 'npx crucible'],
    ['by npx alone', '/home/me/.npm/_npx/1234/node_modules/.bin/crucible', {}, 'npx crucible-ml'],
    ['installed', '/usr/local/bin/crucible', {}, 'crucible'],
  ])('names commands as it was started: %s', async (_how, script, environment, invocation) => {
    Object.assign(world.environment, environment)
    world.script = script
    expect((await world.run()).stdout).toContain(`\`${invocation} demo\``)
    expect((await world.run('list')).stderr).toContain(`\`${invocation} dev\``)
  })

  it.each([
    [{}, true],
    [{ NO_COLOR: '' }, true],
    [{ NO_COLOR: '1' }, false],
    [{ TERM: 'dumb' }, false],
    [{ NO_COLOR: '1', TERM: 'dumb' }, false],
  ])('wants colours in the environment %j: %s', (environment, isColourWanted) => {
    Object.assign(world.environment, environment)
    expect(world.outside().outside.config).toMatchObject({ isColourWanted })
  })

  it('keeps variables before a command that it names', () => {
    const { outside } = world.outside()
    const cli = new Cli({ ...outside, config: { ...outside.config, invocation: './crucible' } }, false)
    expect(cli.asCalled('Run `A=1 B=2 crucible dev` or `crucible list`; crucible is a word.')).toBe(
      'Run `A=1 B=2 ./crucible dev` or `./crucible list`; crucible is a word.',
    )
  })

  it.each([
    [['--version'], { version: expect.stringMatching(/^\d+\.\d+\.\d+/) }],
    [['--help'], { help: expect.any(String) }],
    [[], { help: expect.any(String) }],
    [['nosuch'], { error: expect.objectContaining({ kind: 'usage' }) }],
  ])('%j is JSON when asked', async (args, document) => {
    expect(JSON.parse((await world.run(...args, '--json')).stdout)).toEqual({
      schema: 'crucible/1',
      ...document,
    })
  })

  it.each([
    ['ls', 'list'],
    ['ps', 'list'],
    ['queue', 'list'],
    ['status', 'show'],
    ['describe', 'show'],
    ['get', 'show'],
    ['stop', 'cancel'],
    ['run', 'submit'],
  ])('takes %s for %s', async (alias, name) => {
    const [help, ofCommand] = [await world.run(alias, '--help'), await world.run(name, '--help')]
    expect(help).toEqual(ofCommand)
    expect(await world.run('help', alias)).toEqual(ofCommand)
  })

  it('takes status without a job for the list of all', async () => {
    expect(await world.run('status')).toEqual(await world.run('list'))
    expect((await world.run('status', 'job-none')).stderr).toContain('No job job-none')
  })

  it.each([
    ['delete', 'crucible cancel JOB'],
    ['ssh', 'crucible logs -f JOB'],
    ['resume', 'crucible submit --from JOB'],
    ['download', 'crucible artifacts JOB --download FOLDER'],
  ])('points to the right word when asked to %s', async (word, command) => {
    const { exitCode, stderr } = await world.run(word, 'job-1')
    expect(exitCode).toBe(2)
    expect(stderr).toContain(`Unknown command: ${word}.`)
    expect(stderr).toContain(command)
  })

  it('guesses what was meant', async () => {
    expect(await world.run('lsit')).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: "error: unknown command 'lsit'.\nDid you mean list? See `crucible --help`.\n",
    })
    expect(await world.run('help', 'lsit')).toEqual(await world.run('lsit'))
    expect((await world.run('list', '--jsno')).stderr).toContain('Did you mean --json?')
  })

  it('says how to give options to a script', async () => {
    const { stderr } = await world.run('submit', 'train.py', '--gpus', '1', '--lr', '3e-4', '--note=a b')
    expect(stderr).toBe(
      "error: unknown option '--lr'.\nArguments of the script follow --: `crucible submit train.py --gpus 1 -- --lr 3e-4 '--note=a b'`. See `crucible submit --help`.\n",
    )
    expect((await world.run('submit', 'job.yaml', '--lr', '3')).stderr).not.toContain('follow --')
    // A script that is given a limit drops it.
    for (const [flag, ours] of [
      ['--cost-limit=8', '--budget'],
      ['--max-hourly-cost=2', '--max-price'],
    ]) {
      const { stderr: told } = await world.run('plan', 'train.py', flag!)
      expect(told).toContain(`Did you mean ${ours}? See `)
    }
  })

  it('takes --json after -- for an argument of the script', async () => {
    const { stdout, stderr } = await world.run('submit', 'nofile.py', '--', '--json')
    expect(stdout).toBe('')
    expect(stderr).toContain('There is no file nofile.py here.')
  })

  it.each([
    [['list', '--limit', '0'], /whole number from 1 to 1000\.$/m],
    [['list', '--state', 'asleep'], /one or more of pending, .*cancelled\.$/m],
    [['logs', 'x', '--tail', '-1'], /whole number/],
    [['migrate', 'x', '--to', 'local:cheap'], /"cheap" is not a capacity type.*local:spot/],
    [['extend', 'x'], /Nothing to extend\.\nPass --deadline/],
    [['extend', 'x', '--deadline', 'soon'], /neither an instant nor a duration\.\nWrite a date/],
    [['extend', 'x', '--budget', '-3'], /not an amount of US dollars\.\nWrite \$25/],
    [['interrupt', 'x', '--notice', '5s', '--without-notice'], /exclude each other/],
    [['artifacts', 'x', '--force'], /requires --download/],
    [['artifacts', 'x', '--after', 'a', '--download', 'there'], /leave one out/],
    [['events', 'x', '--record'], /--json/],
    [['checkpoints', 'x', 'check'], /"check" is not an action/],
    [['completion', 'tcsh'], /^error: unknown shell "tcsh"\. Allowed choices are bash, zsh, fish\.$/m],
    [['dev', '--port', '99999'], /whole number from 1 to 65535/],
    [['gc', '--grace', 'never'], /not a duration/],
  ])('refuses %j as a slip of the pen', async (args, complaint) => {
    const { exitCode, stderr } = await world.run(...args)
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(complaint)
  })

  it('says that a Temporal address is no URL, before it waits for a server', async () => {
    world.environment['TEMPORAL_ADDRESS'] = 'http://localhost:7233'
    const { exitCode, stderr } = await world.run('list')
    expect(exitCode).toBe(2)
    expect(stderr).toContain('the address http://localhost:7233 is a URL; write host:port, without http://.')
  })

  it('says where a job file is wrong, by line and column', async () => {
    const path = jobFile('run: x\nresources:\n  gpus: many\nbudjet: 3\n')
    const text = await world.run('submit', path)
    expect(text.exitCode).toBe(2)
    expect(text.stderr).toContain(`${path}:3:9: resources.gpus "many" is not`)
    expect(text.stderr).toContain(`${path}:4:1: budjet is not a field. Did you mean budget?`)
    const { stdout } = await world.run('submit', path, '--json')
    expect(JSON.parse(stdout)).toMatchObject({
      error: {
        kind: 'usage',
        problems: [
          { line: 3, column: 9, path: 'resources.gpus' },
          { line: 4, column: 1 },
        ],
      },
    })
  })

  it('reports settings that cannot be used, all at once', async () => {
    Object.assign(world.environment, { CRUCIBLE_LEASE: 'long', CRUCIBLE_BACKENDS: 'moon' })
    const { exitCode, stderr } = await world.run('worker')
    expect(exitCode).toBe(2)
    expect(stderr).toMatch(/CRUCIBLE_LEASE is "long"[^]*moon/)
  })

  it('checks the rest where some settings cannot be used', async () => {
    Object.assign(world.environment, { CRUCIBLE_LEASE: 'long', CRUCIBLE_BACKENDS: 'moon,local' })
    const { exitCode, stdout } = await world.run('doctor')
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/error +settings +CRUCIBLE_LEASE is "long"[^]*error +settings +[^]*moon/)
    expect(stdout).toMatch(/ok +store/)
    expect(stdout).toMatch(/(ok|warning) +backends +local/)
  })
})
