import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { SERVER_VERSION } from './programs'

const ROOT = join(__dirname, '..', '..')

/** The deployment itself takes minutes: `npm run proof -- deployment`. */
describe('the Temporal server of npm run proof -- deployment', () => {
  it('has the version of the images in docker-compose.yml', () => {
    const module = readFileSync(join(ROOT, 'tools', 'temporal-server', 'go.mod'), 'utf8')
    expect(module).toContain(`go.temporal.io/server v${SERVER_VERSION}`)
    const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')
    const versions = [...compose.matchAll(/temporalio\/(?:server|admin-tools):(\S+)/g)].map(
      ([, version]) => version,
    )
    expect(versions).toEqual([SERVER_VERSION, SERVER_VERSION, SERVER_VERSION])
  })
})
