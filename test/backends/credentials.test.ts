import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { findCredentials, lastFour, type CredentialSource } from '../../backends/credentials'
import { awsCredentials } from '../../backends/ec2/credentials'

const ID = 'ak-0123456789abcdefWXYZ'
const SECRET = 'as-the-secret-that-nobody-sees'

let folder: string
let path: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-credentials-'))
  path = join(folder, 'credentials.json')
})
afterEach(() => rmSync(folder, { recursive: true }))

const source = (): CredentialSource => ({
  variables: ['SMALL_ID', 'SMALL_SECRET'],
  file: { paths: [path], read: (text) => JSON.parse(text) as Record<string, string> },
})
const written = (mode = 0o600): void => {
  writeFileSync(path, JSON.stringify({ SMALL_ID: ID, SMALL_SECRET: SECRET }))
  chmodSync(path, mode)
}

describe('credentials', () => {
  it('are taken from the environment first, then from the file of the provider', () => {
    written()
    const own = { SMALL_ID: 'own-id-of-the-environment', SMALL_SECRET: 'own' }
    expect(findCredentials(source(), own)?.values).toEqual(own)
    expect(findCredentials(source(), { SMALL_ID: 'half of it' })?.values).toEqual({
      SMALL_ID: ID,
      SMALL_SECRET: SECRET,
    })
    expect(findCredentials(source(), {})?.values).toEqual({ SMALL_ID: ID, SMALL_SECRET: SECRET })
  })

  it('are missing where neither has all of them', () => {
    expect(findCredentials(source(), {})).toBeUndefined()
    writeFileSync(path, JSON.stringify({ SMALL_ID: ID }))
    expect(findCredentials(source(), {})).toBeUndefined()
    expect(findCredentials({ variables: ['SMALL_ID'] }, { SMALL_ID: ' ' })).toBeUndefined()
  })

  it('are shown by the last four characters of the first one at most', () => {
    written()
    const found = findCredentials(source(), {})!
    expect(found.description).toBe(`SMALL_ID …WXYZ from ${path}`)
    expect(found.problem).toBeUndefined()
    expect([lastFour('0123456789abcdef'), lastFour('0123456789')]).toEqual(['…cdef', '…'])
  })

  it.each([0o640, 0o604, 0o644])('in a file that others can read come with a warning (%o)', (mode) => {
    written(mode)
    const { problem } = findCredentials(source(), {})!
    expect(problem).toMatchObject({ severity: 'warning', remedy: `Make the file private: chmod 600 ${path}` })
    expect(JSON.stringify(problem)).not.toContain('WXYZ')
  })

  it('in a file that is no such file are refused, without its text', () => {
    writeFileSync(path, SECRET)
    const attempt = (): unknown => findCredentials(source(), {})
    expect(attempt).toThrow(`${path} is not a file of credentials.`)
    expect(attempt).not.toThrow(SECRET)
  })

  it('of AWS are found in the section of the profile', () => {
    const [key, secret] = ['AKIA0123456789ABCDEF', 'a/secret+of=forty']
    const file = join(folder, 'aws')
    writeFileSync(
      file,
      `[default]\naws_access_key_id=other\naws_secret_access_key=other\n[ mine ]\naws_access_key_id = ${key}\naws_secret_access_key = ${secret}\n[later]\naws_access_key_id=other\naws_secret_access_key=other\n`,
    )
    const environment = { AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: 'mine' }
    const found = findCredentials(awsCredentials(environment), environment)
    expect(found?.values).toEqual({ AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret })
    const other = { ...environment, AWS_PROFILE: 'none' }
    expect(findCredentials(awsCredentials(other), other)).toBeUndefined()
  })
})
