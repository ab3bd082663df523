// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_engine.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int curlew_netlink_open(void) {
    static const int groups[] = {RTNLGRP_LINK,       RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
                                 RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE,   RTNLGRP_IPV6_RULE,   RTNLGRP_NEXTHOP};
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0) {
        int failures = 0;
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
            int code = setsockopt(descriptor, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, groups + i, sizeof *groups);
            // An older kernel may not have the groups after the routes of IPv6.
            if (code != 0 && groups[i] <= RTNLGRP_IPV6_ROUTE) failures++;
        }
        if (failures == 0) return descriptor;
    }
    int failure = errno;
    close(descriptor);
    errno = failure;
    return -1;
}

bool curlew_netlink_drain(int descriptor) {
    _Alignas(struct nlmsghdr) char message[8192];
    bool has_links = false;
    // ENOBUFS means that the kernel dropped messages: there may be more, and the caller reads the state again anyway.
    // The number of messages is limited, so that a kernel with ever more messages does not keep the caller here.
    for (int i = 0; i < 4096; i++) {
        ssize_t length = recv(descriptor, message, sizeof message, 0);
        if (length == 0 || (length < 0 && errno != ENOBUFS && errno != EINTR)) break;
        if (length < 0) {
            has_links = true;
            continue;
        }
        for (struct nlmsghdr *head = (struct nlmsghdr *)message; NLMSG_OK(head, (size_t)length);
             head = NLMSG_NEXT(head, length)) {
            if (head->nlmsg_type <= RTM_GETADDR) has_links = true;
        }
    }
    return has_links;
}

static void read_link(struct nlmsghdr *head, void *context, void (*report)(void *, const curlew_link *)) {
    struct ifinfomsg *info = NLMSG_DATA(head);
    curlew_link link = {.index = (uint32_t)info->ifi_index, .flags = info->ifi_flags, .type = info->ifi_type};
    int left = (int)IFLA_PAYLOAD(head);
    for (struct rtattr *part = IFLA_RTA(info); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type == IFLA_IFNAME) {
            strncpy(link.name, RTA_DATA(part), sizeof link.name - 1);
        } else if (part->rta_type == IFLA_LINKINFO) {
            int rest = (int)RTA_PAYLOAD(part);
            for (struct rtattr *inner = RTA_DATA(part); RTA_OK(inner, rest); inner = RTA_NEXT(inner, rest)) {
                if (inner->rta_type == IFLA_INFO_KIND) strncpy(link.kind, RTA_DATA(inner), sizeof link.kind - 1);
            }
        }
    }
    report(context, &link);
}

static void read_address(struct nlmsghdr *head, void *context, void (*report)(void *, const curlew_link_address *)) {
    struct ifaddrmsg *info = NLMSG_DATA(head);
    if (info->ifa_family != AF_INET && info->ifa_family != AF_INET6) return;
    // The kernel does not use an IPv6 address before it knows that no other machine has it.
    if (info->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) && !(info->ifa_flags & IFA_F_OPTIMISTIC)) return;
    curlew_link_address address = {
        .index = info->ifa_index, .count = info->ifa_family == AF_INET ? 4 : 16, .scope = info->ifa_scope};
    report(context, &address);
}

// Reads one table of the kernel. Returns 0, errno, or EAGAIN when the table changed while it was read.
static int dump(int descriptor, unsigned short type, void *context, void (*link)(void *, const curlew_link *),
                void (*address)(void *, const curlew_link_address *)) {
    struct {
        struct nlmsghdr head;
        struct rtgenmsg body;
    } question = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg)), .nlmsg_type = type,
                           .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP, .nlmsg_seq = type},
                  .body = {.rtgen_family = AF_UNSPEC}};
    if (send(descriptor, &question, question.head.nlmsg_len, 0) < 0) return errno;
    // The kernel fills a buffer of up to 32 KiB.
    _Alignas(struct nlmsghdr) char answer[32 << 10];
    bool is_interrupted = false;
    while (true) {
        ssize_t length = recv(descriptor, answer, sizeof answer, MSG_TRUNC);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) return length < 0 ? errno : EPROTO;
        // The end of the table may be among the lost bytes; a further recv(2) would then wait for ever.
        if ((size_t)length > sizeof answer) return EMSGSIZE;
        for (struct nlmsghdr *head = (struct nlmsghdr *)answer; NLMSG_OK(head, (size_t)length);
             head = NLMSG_NEXT(head, length)) {
            if (head->nlmsg_flags & NLM_F_DUMP_INTR) is_interrupted = true;
            if (head->nlmsg_type == NLMSG_DONE) {
                // A table that the kernel could not read to its end.
                int code = 0;
                if (head->nlmsg_len >= NLMSG_LENGTH(sizeof code)) memcpy(&code, NLMSG_DATA(head), sizeof code);
                if (code < 0) return -code;
                return is_interrupted ? EAGAIN : 0;
            }
            if (head->nlmsg_type == NLMSG_ERROR) return -((struct nlmsgerr *)NLMSG_DATA(head))->error;
            if (head->nlmsg_type == RTM_NEWLINK) read_link(head, context, link);
            if (head->nlmsg_type == RTM_NEWADDR) read_address(head, context, address);
        }
    }
}

int curlew_netlink_read(void *context, void (*link)(void *, const curlew_link *),
                        void (*address)(void *, const curlew_link_address *)) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return errno;
    int code = dump(descriptor, RTM_GETLINK, context, link, address);
    if (code == 0) code = dump(descriptor, RTM_GETADDR, context, link, address);
    close(descriptor);
    return code;
}

uint32_t curlew_link_number(const char *name) { return if_nametoindex(name); }

int curlew_route_find(const uint8_t *bytes, const uint8_t *source, int count, uint32_t index, curlew_route *route) {
    memset(route, 0, sizeof *route);
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        char attributes[2 * RTA_SPACE(16) + RTA_SPACE(4)];
    } question = {.head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST},
                  .route = {.rtm_family = count == 4 ? AF_INET : AF_INET6, .rtm_dst_len = (unsigned char)(8 * count)}};
    const void *values[] = {bytes, source, index ? &index : NULL};
    const unsigned short types[] = {RTA_DST, RTA_SRC, RTA_OIF};
    const unsigned sizes[] = {(unsigned)count, (unsigned)count, sizeof index};
    size_t used = 0;
    for (int i = 0; i < 3; i++) {
        if (!values[i]) continue;
        struct rtattr *part = (struct rtattr *)(question.attributes + used);
        part->rta_type = types[i];
        part->rta_len = (unsigned short)RTA_LENGTH(sizes[i]);
        memcpy(RTA_DATA(part), values[i], sizes[i]);
        used += RTA_SPACE(sizes[i]);
    }
    if (source) question.route.rtm_src_len = (unsigned char)(8 * count);
    question.head.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + used);
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return errno;
    // The kernel answers inside of send(2).
    _Alignas(struct nlmsghdr) char answer[4096];
    ssize_t length = -1;
    if (send(descriptor, &question, question.head.nlmsg_len, 0) >= 0)
        length = recv(descriptor, answer, sizeof answer, MSG_DONTWAIT);
    int failure = length < 0 ? errno : 0;
    close(descriptor);
    if (failure) return failure;
    struct nlmsghdr *head = (struct nlmsghdr *)answer;
    if (!NLMSG_OK(head, (size_t)length)) return EPROTO;
    if (head->nlmsg_type == NLMSG_ERROR) {
        int code = -((struct nlmsgerr *)NLMSG_DATA(head))->error;
        // Other errors, such as ENETUNREACH and EACCES, mean that the kernel has no route.
        return code == ENOMEM || code == ENOBUFS || code == EPERM ? code : 0;
    }
    if (head->nlmsg_type != RTM_NEWROUTE) return 0;
    struct rtmsg *found = NLMSG_DATA(head);
    if (found->rtm_type != RTN_UNICAST && found->rtm_type != RTN_LOCAL && found->rtm_type != RTN_ANYCAST) return 0;
    route->is_local = found->rtm_type == RTN_LOCAL;
    int left = (int)RTM_PAYLOAD(head);
    for (struct rtattr *part = RTM_RTA(found); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type == RTA_OIF) {
            memcpy(&route->index, RTA_DATA(part), sizeof route->index);
            if (!if_indextoname(route->index, route->name)) return errno;
        } else if (part->rta_type == RTA_PREFSRC && RTA_PAYLOAD(part) == (unsigned)count) {
            memcpy(route->source, RTA_DATA(part), (size_t)count);
            route->source_count = (uint8_t)count;
        }
    }
    return 0;
}
