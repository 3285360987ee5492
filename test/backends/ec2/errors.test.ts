import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { AwsError } from '../../../backends/ec2/sdk/api'
import { ec2Error, failureOfCode, failureOfState, mayHaveHappened } from '../../../backends/ec2/errors'
import { awsError } from '../../../backends/ec2/sdk/errors'
import type { FailureClass } from '../../../core/failure'
import { answered } from './fake-api'

describe('what a code of AWS allows to be done next', () => {
  it.each<[FailureClass, string[]]>([
    [
      'capacity',
      ['InsufficientInstanceCapacity', 'UnfulfillableCapacity', 'Unsupported', 'ReservationCapacityExceeded'],
    ],
    [
      'capacity',
      ['InsufficientFreeAddressesInSubnet', 'InvalidAvailabilityZone', 'IdempotentInstanceTerminated'],
    ],
    [
      'quota',
      ['VcpuLimitExceeded', 'MaxSpotInstanceCountExceeded', 'InstanceLimitExceeded', 'VolumeLimitExceeded'],
    ],
    ['throttled', ['RequestLimitExceeded', 'ThrottlingException', 'SlowDown', 'RateExceeded']],
    [
      'transient',
      ['InternalError', 'ServiceUnavailable', 'ConcurrentTagAccess', 'InvalidInstanceID.NotFound'],
    ],
    [
      'transient',
      ['InvalidInstanceId', 'InvocationDoesNotExist', 'InvalidLaunchTemplateName.NotFoundException'],
    ],
    [
      'auth',
      [
        'UnauthorizedOperation',
        'AuthFailure',
        'SignatureDoesNotMatch',
        'OptInRequired',
        'AccessDeniedException',
      ],
    ],
    ['auth', ['CredentialsProviderError', 'AuthFailure.ServiceLinkedRoleCreationNotPermitted']],
    [
      'invalid',
      ['IdempotentParameterMismatch', 'InvalidAMIID.NotFound', 'InvalidParameterValue', 'ParameterNotFound'],
    ],
    ['invalid', ['PermanentRedirect', 'AuthorizationHeaderMalformed']],
    ['expired', ['InvalidCapacityReservationId.NotFound']],
  ])('%s: %s', (failureClass, codes) => {
    for (const code of codes)
      expect(failureOfCode(code, 'words')).toMatchObject({ class: failureClass, code })
  })

  it('names the setting for tags where a policy denies a launch', () => {
    const denied =
      'not authorized to perform: ec2:RunInstances on resource: x with an explicit deny in a policy'
    expect(failureOfCode('UnauthorizedOperation', denied)).toMatchObject({
      class: 'auth',
      hint: expect.stringContaining('CRUCIBLE_EC2_TAGS'),
    })
  })

  it('keeps the raw text of an unclassified failure, and calls it that', () => {
    expect(failureOfCode('BrandNewTrouble', 'the moon is in the way')).toEqual({
      class: 'unclassified',
      code: 'BrandNewTrouble',
      message: 'the moon is in the way',
    })
  })

  it('says what to do about every failure that needs an operator', () => {
    const source = readFileSync(join(__dirname, '../../../backends/ec2/meanings.ts'), 'utf8')
    const codes = [...source.matchAll(/^ {2}'?([A-Z][\w.]+)'?: /gm)].map(([, code]) => code!)
    expect(codes.length).toBeGreaterThan(100)
    const mended = codes
      .map((code) => failureOfCode(code, 'words'))
      .filter(({ class: c }) => ['auth', 'invalid', 'quota'].includes(c))
    expect(mended.filter(({ hint }) => hint === undefined)).toEqual([])
  })

  it.each(['AuthFailure', 'UnrecognizedClientException'])(
    'names the Region where %s is about one',
    (code) => {
      const { class: kind, hint } = failureOfCode(code, 'This account has no region us-west-2')
      expect({ kind, hint }).toEqual({ kind: 'auth', hint: expect.stringContaining('use another Region') })
      expect(failureOfCode(code, 'Not validated').hint).toContain('credentials')
    },
  )

  it('takes a profile that is too new to be known for something that passes', () => {
    const message =
      'Value (crucible-machine) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name'
    expect(failureOfCode('InvalidParameterValue', message)).toMatchObject({ class: 'transient' })
  })

  it.each<[string, FailureClass | undefined]>([
    ['Server.InsufficientInstanceCapacity', 'capacity'],
    ['Client.VolumeLimitExceeded', 'quota'],
    ['Client.InternalError', 'unclassified'],
    ['Client.UserInitiatedShutdown', undefined],
  ])('a machine that never came to run for %s', (code, failureClass) => {
    expect(failureOfState(code, 'words')?.class).toBe(failureClass)
  })
})

describe('whether a call may have had its effect', () => {
  it.each<[string, AwsError, boolean]>([
    ['an answer that refuses', answered('VcpuLimitExceeded'), false],
    [
      'want of capacity, which comes as a fault of the server',
      answered('InsufficientInstanceCapacity', 500),
      false,
    ],
    ['too many requests', answered('RequestLimitExceeded', 503), false],
    ['a fault of the server', answered('InternalError', 500), true],
    ['an unknown fault of the server', answered('Kaboom', 502), true],
    ['a connection that broke', new AwsError('x', { code: 'ECONNRESET', reach: 'unanswered' }), true],
    ['a connection that never was', new AwsError('x', { code: 'ECONNREFUSED', reach: 'unsent' }), false],
  ])('%s: %s', (_name, error, may) => {
    expect(mayHaveHappened(error)).toBe(may)
  })

  it('reads it out of what the SDK throws', () => {
    const thrown = (facts: object): AwsError => awsError(Object.assign(new Error('words'), facts))
    expect(thrown({ name: 'InvalidGroup.NotFound', $metadata: { httpStatusCode: 400 } })).toMatchObject({
      code: 'InvalidGroup.NotFound',
      httpStatus: 400,
      reach: 'answered',
    })
    expect(thrown({ code: 'ECONNRESET' }).reach).toBe('unanswered')
    expect(thrown({ code: 'ENOTFOUND' }).reach).toBe('unsent')
    expect(thrown({ name: 'TimeoutError' }).reach).toBe('unanswered')
    expect(thrown({ name: 'CredentialsProviderError' })).toMatchObject({ reach: 'unsent' })
    expect(ec2Error(thrown({ name: 'CredentialsProviderError' })).class).toBe('auth')
    for (const name of ['UnknownError', '']) {
      const nameless = thrown({ name, message: 'UnknownError', $metadata: { httpStatusCode: 400 } })
      expect(nameless).toMatchObject({
        code: 'UnknownError',
        reach: 'unanswered',
        message: 'AWS answered HTTP 400 without an error code',
      })
      expect(ec2Error(nameless).class).toBe('transient')
    }
    expect(ec2Error(thrown({ name: 'SyntaxError', $metadata: { httpStatusCode: 200 } })).class).toBe(
      'transient',
    )
  })
})
