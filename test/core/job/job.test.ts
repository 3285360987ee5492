import { expect, it } from '@jest/globals'
import { secretsNeeded } from '../../../core/job/job'

it('a job needs its own secrets, then that of its image, each once', () => {
  const imageLogin = { username: 'ada', secret: 'REGISTRY_TOKEN' }
  expect(secretsNeeded({ secrets: ['B', 'A'] })).toEqual(['B', 'A'])
  expect(secretsNeeded({ secrets: ['B', 'A'], imageLogin })).toEqual(['B', 'A', 'REGISTRY_TOKEN'])
  expect(secretsNeeded({ secrets: ['REGISTRY_TOKEN', 'A'], imageLogin })).toEqual(['REGISTRY_TOKEN', 'A'])
})
