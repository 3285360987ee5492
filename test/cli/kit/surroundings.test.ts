import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkSurroundings, exemptLoopback, nameUser } from '../../../cli/kit/surroundings'

const NEAR = 'localhost,127.0.0.1,::1,169.254.169.254,169.254.170.2,fd00:ec2::254'

describe('a proxy', () => {
  const exempted = (environment: Record<string, string>): NodeJS.ProcessEnv => {
    const copy = { ...environment }
    exemptLoopback(copy)
    return copy
  }

  it.each([
    [{}, undefined],
    [{ HTTP_PROXY: '' }, undefined],
    [{ HTTP_PROXY: 'http://proxy:3128' }, NEAR],
    [{ grpc_proxy: 'http://proxy:3128', NO_PROXY: 'intra, localhost' }, `intra,${NEAR}`],
    [{ https_proxy: 'http://proxy:3128', no_proxy: '*' }, '*'],
  ])('is not used for this machine: %j', (environment, exempt) => {
    const { no_proxy: lower, NO_PROXY: upper } = exempted(environment)
    expect([lower, upper]).toEqual([exempt, exempt])
  })
})

describe('the folder for temporary files', () => {
  const before = process.env['TMPDIR']
  beforeEach(() => void (process.env['TMPDIR'] = '/nothing/here'))
  afterEach(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })

  it('is named, with the remedy, when it does not exist', () => {
    expect(checkSurroundings).toThrow('The folder for temporary files, /nothing/here, does not exist.')
    process.env['TMPDIR'] = process.cwd()
    expect(checkSurroundings).not.toThrow()
  })
})

describe('the current folder', () => {
  it('is named, with the remedy, when it was deleted', () => {
    const gone = mkdtempSync(join(tmpdir(), 'crucible-gone-'))
    const text = `const { obstacles } = require('./cli/kit/surroundings.ts'); process.chdir(${JSON.stringify(gone)});
      require('node:fs').rmdirSync(${JSON.stringify(gone)}); console.log(JSON.stringify(obstacles()))`
    const root = join(__dirname, '../../..')
    const flags = ['--import', join(root, 'test/support/typescript.mjs'), '-e', text]
    const told = execFileSync(process.execPath, flags, { cwd: root, encoding: 'utf8' })
    expect(JSON.parse(told)).toEqual([
      { message: 'The current folder does not exist.', hint: 'Change to another folder, then try again.' },
    ])
  })
})

describe('a user', () => {
  it('that the system knows keeps its names', () => {
    const environment = {}
    nameUser(environment)
    expect(environment).toEqual({})
  })

  it('that the system does not know gets a name and a home, unless it has them', () => {
    const unknown = (): never => {
      throw new Error('ENOENT')
    }
    const environment = { HOME: '/work' }
    nameUser(environment, unknown)
    expect(environment).toEqual({ HOME: '/work', USER: String(process.getuid!()) })
  })
})
