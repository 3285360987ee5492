import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { addressFrom } from '../../../../cli/dev/temporal/address'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crucible-address-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** An environment whose temporal.toml is the text, or is not there. */
function environment(toml: string | undefined, variables: Record<string, string> = {}): NodeJS.ProcessEnv {
  const file = join(folder, 'temporal.toml')
  if (toml !== undefined) writeFileSync(file, toml)
  return { TEMPORAL_CONFIG_FILE: file, ...variables }
}

describe('addressFrom', () => {
  it('returns no address when none is configured', () => {
    expect(addressFrom(environment(undefined))).toBeUndefined()
    expect(addressFrom(environment('[profile.default]\nnamespace = "ml"'))).toBeUndefined()
    expect(addressFrom(environment(undefined, { TEMPORAL_ADDRESS: '' }))).toBeUndefined()
  })

  it('takes TEMPORAL_ADDRESS, in the default namespace', () => {
    expect(addressFrom(environment(undefined, { TEMPORAL_ADDRESS: 'temporal:7233' }))).toMatchObject({
      kind: 'address',
      address: 'temporal:7233',
      namespace: 'default',
    })
  })

  it('reads a whole profile of temporal.toml', () => {
    const toml = '[profile.cloud]\naddress = "ns.tmprl.cloud:7233"\nnamespace = "ns"\napi_key = "k"'
    expect(addressFrom(environment(toml, { TEMPORAL_PROFILE: 'cloud' }))).toMatchObject({
      address: 'ns.tmprl.cloud:7233',
      namespace: 'ns',
      connectionOptions: { address: 'ns.tmprl.cloud:7233', apiKey: 'k', tls: true },
    })
  })

  it.each([
    ['a profile that is not there', '[profile.default]\n', { TEMPORAL_PROFILE: 'cloud' }],
    ['a temporal.toml that is none', 'address: yaml', {}],
  ])('complains of %s and says what to do', (_what, toml, variables) => {
    const read = (): unknown => addressFrom(environment(toml, variables))
    expect(read).toThrow(/The Temporal configuration of the environment cannot be read: .*Correct/s)
    expect(read).toThrow(expect.objectContaining({ code: 'configuration' }))
  })
})
