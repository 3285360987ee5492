import { afterAll, beforeAll, expect } from '@jest/globals'
import { awsClients, judgeWire } from '../support/aws-clients'
import { connectTo, quietWorkers, type TestConnection } from '../support/temporal'
import { CloudDeployment, type DeploymentWishes } from './deployment'

/**
 * One deployment for all tests of a file, given to `use` before the first of them. In the end all that it has asked of AWS, and all that
 * the small cloud has answered, is judged by botocore's models, where there is a Python that has them.
 */
export function onDeployment(wishes: DeploymentWishes, use: (deployment: CloudDeployment) => void): void {
  let at: TestConnection | undefined
  let deployment: CloudDeployment | undefined
  beforeAll(async () => {
    quietWorkers()
    at = await connectTo()
    deployment = await CloudDeployment.start(at, { ...wishes, isRecorded: true })
    use(deployment)
  })
  afterAll(async () => {
    const calls = deployment?.calls ?? []
    await deployment?.stop()
    await at?.close()
    const { python } = awsClients()
    if (python === undefined) return
    const { judged, problems } = await judgeWire(python, calls)
    expect(problems).toEqual([])
    expect(judged).toBeGreaterThan(100)
  })
}
