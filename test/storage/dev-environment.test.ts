import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { homeOf, removeDevNote, replaceAws, withDevEnvironment, writeDevNote } from '../../storage/home'
import { readClientConfig } from '../../client/config'
import { testFolder } from '../support/folders'

const ADDED = { CRUCIBLE_STORE: 's3://crucible', CRUCIBLE_BEAT: '1s', AWS_ACCESS_KEY_ID: 'test' }

function homeWithDev(): { CRUCIBLE_HOME: string } {
  const env = { CRUCIBLE_HOME: join(testFolder('dev-note'), 'home') }
  writeDevNote(homeOf(env), { pid: process.pid, address: 'localhost:7000', uiUrl: '', environment: ADDED })
  return env
}

describe('the environment next to a running crucible dev', () => {
  it('has what its deployment needs, no key of another account, and what the user sets himself', () => {
    const own = { ...homeWithDev(), AWS_PROFILE: 'work', AWS_ACCESS_KEY_ID: 'mine', CRUCIBLE_BEAT: '9s' }
    expect(withDevEnvironment(own)).toEqual({
      CRUCIBLE_HOME: own.CRUCIBLE_HOME,
      CRUCIBLE_STORE: 's3://crucible',
      CRUCIBLE_BEAT: '9s',
      AWS_ACCESS_KEY_ID: 'test',
    })
    expect(withDevEnvironment({ ...own, TEMPORAL_ADDRESS: 'localhost:7000' })).toMatchObject({
      AWS_ACCESS_KEY_ID: 'test',
    })
  })

  it('is left alone where it names another server or store, and when dev has ended', () => {
    const own = homeWithDev()
    for (const other of [{ TEMPORAL_ADDRESS: 'elsewhere:7233' }, { CRUCIBLE_STORE: 's3://mine' }]) {
      const env = { ...own, ...other, AWS_ACCESS_KEY_ID: 'mine' }
      expect(withDevEnvironment(env)).toBe(env)
    }
    removeDevNote(homeOf(own), { pid: process.pid, address: '', uiUrl: '' })
    expect(withDevEnvironment(own)).toBe(own)
  })

  it('has a server that dev restarts, unless it names another', () => {
    const own = homeWithDev()
    expect(readClientConfig(own).temporal).toMatchObject({
      isOfDev: true,
      connection: { address: 'localhost:7000' },
    })
    const elsewhere = readClientConfig({ ...own, TEMPORAL_ADDRESS: 'elsewhere:7233' })
    expect(elsewhere.temporal).not.toHaveProperty('isOfDev')
  })

  it('replaces every variable of AWS, until that is undone', () => {
    const env: NodeJS.ProcessEnv = { PATH: '/bin', AWS_PROFILE: 'work', AWS_REGION: 'eu-west-1' }
    const undo = replaceAws(ADDED, env)
    expect(env).toEqual({ PATH: '/bin', AWS_ACCESS_KEY_ID: 'test' })
    undo()
    expect(env).toEqual({ PATH: '/bin', AWS_PROFILE: 'work', AWS_REGION: 'eu-west-1' })
  })
})
