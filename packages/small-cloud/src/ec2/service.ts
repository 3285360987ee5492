import type { Service } from '../wire/service'
import { EC2_NAMESPACE } from '../wire/xml'
import { offeringActions } from './block-offerings'
import { quoteActions } from './cancellation-quotes'
import { dateChangeActions } from './date-change-quotes'
import { catalogActions } from './catalog'
import type { Ec2 } from './ec2'
import { extensionActions } from './extensions'
import { fleetActions } from './fleet'
import { instanceActions } from './instances'
import { networkActions } from './network'
import { placementActions } from './placement'
import { purchaseActions } from './purchases'
import { reservationChangeActions } from './reservation-changes'
import { reservationListActions } from './reservation-lists'
import { reservationActions } from './reservations'
import { runInstancesActions } from './run-instances'
import { spotActions } from './spot'
import { stopStartActions } from './stop-start'
import { tagActions } from './tags'
import { templateActions } from './templates'
import { volumeActions } from './volumes'
import { wishesOf } from './wishes'

export function ec2Service(ec2: Ec2): Service {
  return {
    name: 'ec2',
    style: 'ec2',
    namespace: EC2_NAMESPACE,
    wishes: (input, call) => wishesOf(ec2, input, call),
    actions: {
      ...networkActions(ec2),
      ...catalogActions(ec2),
      ...templateActions(ec2),
      ...runInstancesActions(ec2),
      ...fleetActions(ec2),
      ...instanceActions(ec2),
      ...stopStartActions(ec2),
      ...spotActions(ec2),
      ...reservationActions(ec2),
      ...reservationChangeActions(ec2),
      ...reservationListActions(ec2),
      ...quoteActions(ec2),
      ...dateChangeActions(ec2),
      ...offeringActions(ec2),
      ...purchaseActions(ec2),
      ...extensionActions(ec2),
      ...placementActions(ec2),
      ...volumeActions(ec2),
      ...tagActions(ec2),
    },
  }
}
