import { afterEach, expect, it, jest } from '@jest/globals'
import { createSdkApi } from '../../../../backends/ec2/sdk/index'

afterEach(() => {
  jest.restoreAllMocks()
})

it('the SDK does not ask for another Node than Crucible does', () => {
  const warned = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  createSdkApi({ region: 'us-east-1' })
  expect(warned.mock.calls).toEqual([])
})
